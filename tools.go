//go:build tools

// The tools build tag is never set: this file only makes `go mod tidy` list the code generator as a direct requirement,
// next to the tool directive in go.mod.

package pactwire

import (
	_ "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen"
)
