// Starts Swagger UI on the document that the page names. In a file of its own because the page allows no inline scripts.
'use strict';
window.ui = SwaggerUIBundle({
  url: document.getElementById('swagger-ui').dataset.spec,
  dom_id: '#swagger-ui',
  deepLinking: true,
  displayRequestDuration: true,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  tryItOutEnabled: true,
  validatorUrl: null, // otherwise Swagger UI asks a server on the internet whether the document is valid
  queryConfigEnabled: false, // ?url= would let a link show a foreign document under our name
  presets: [SwaggerUIBundle.presets.apis],
});
