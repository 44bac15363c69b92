// Package gen is generated from openapi/openapi.yaml: the models, the strict server interface for echo, the typed client, and the document itself.
// Applications use the client: gen.NewClientWithResponses.
package gen

//go:generate go tool oapi-codegen -config ../openapi/models.cfg.yaml ../openapi/openapi.yaml
//go:generate go tool oapi-codegen -config ../openapi/server.cfg.yaml ../openapi/openapi.yaml
//go:generate go tool oapi-codegen -config ../openapi/client.cfg.yaml ../openapi/openapi.yaml
//go:generate go tool oapi-codegen -config ../openapi/spec.cfg.yaml ../openapi/openapi.yaml
