// Package openapi holds the service's own OpenAPI document, written by hand, and builds the document of each contract API.
//
// Build is pure: the same interface, names and address give the same bytes, so their hash is an ETag. Its documents are OpenAPI 3.0.3
// with the service's own schemas for errors, invocations and listeners; parameters stand in the contract's order, and structs whose name the
// compiler has told are components.
//
// Client generators take them as they are: no oneOf, required lists, typed errors, names of operations and schemas that stay unique whatever
// is made of their case and punctuation, x-go-name where the members of an object would meet in Go, and examples that the service takes when
// they are sent unchanged. A parameter name that no Solidity compiler would accept is kept, and generators may stumble over it.
//
// The golden documents under testdata are what the tests, Redocly's linter (make openapi-lint) and readers look at; go test ./openapi -update
// writes them again.
package openapi
