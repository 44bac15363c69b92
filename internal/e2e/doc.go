// Package e2e holds tests only: the whole service, on a real PostgreSQL and a real chain, driven through the generated client. Each HTTP
// exchange is validated against openapi.yaml, the answer included.
package e2e
