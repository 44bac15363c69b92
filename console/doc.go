// Package console serves Swagger UI for the service and for each contract API, from assets inside the binary.
//
// What it guarantees: a page makes no request to another machine, and its Content-Security-Policy keeps the browser from making any; no script stands in
// a page, so that a name or description from the network cannot become one. "Try it out" works wherever the document's server address has the page's origin.
//
// What it does not: it neither makes nor checks the document that a page shows.
package console
