// Package openapi holds the service's own OpenAPI document, written by hand, and builds the document of each contract API.
//
// Build is pure: the same interface, names and address give the same bytes, so their hash is an ETag. Its answers are OpenAPI 3.0.3 with
// the service's own schemas for errors, invocations and listeners; no oneOf, unique operationIds, required lists and typed errors, so that
// client generators take them as they are.
package openapi
