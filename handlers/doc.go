// Package handlers serves the REST API: it implements the interface that is generated from openapi.yaml, one file per resource.
//
//	echo ─► time limit ─► authenticate ─► validate (openapi.yaml) ─► generated wrapper ─► Server method ─► contract, chain, store …
//	                                                                        │ error
//	                                                     handleError ─► problem+json, the only place that writes errors
//
// A handler returns (nil, err) for anything that went wrong; it never builds an error response itself, and never returns (nil, nil).
package handlers
