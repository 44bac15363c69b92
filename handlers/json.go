package handlers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	pactwire "github.com/pactwire/pactwire"
)

// checkJSON refuses a body that is no single JSON value, nests too deeply, is no UTF-8, or names a member twice: readers of such a
// document would not agree on what it says (RFC 8259, section 4).
func checkJSON(body []byte) error {
	if !utf8.Valid(body) {
		return pactwire.Invalid("", "the request body must be UTF-8")
	}
	if !json.Valid(body) {
		var any json.RawMessage
		err := json.Unmarshal(body, &any)
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			line := 1 + bytes.Count(body[:min(int(syntax.Offset), len(body))], []byte("\n"))
			return pactwire.Invalid("", "the request body is not valid JSON: %s (line %d, byte %d)", syntax.Error(), line, syntax.Offset)
		}
		return pactwire.Invalid("", "the request body is not valid JSON")
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	type level struct {
		object bool
		key    bool // the next token is a key
		names  map[string]struct{}
	}
	var stack []level
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the tokens of valid JSON: %w", err)
		}
		switch t := token.(type) {
		case json.Delim:
			if t == '{' || t == '[' {
				if len(stack) >= maxDepth {
					return pactwire.Invalid("", "the request body nests more than %d levels deep", maxDepth)
				}
				if n := len(stack); n > 0 {
					stack[n-1].key = stack[n-1].object
				}
				stack = append(stack, level{object: t == '{', key: t == '{'})
				continue
			}
			stack = stack[:len(stack)-1]
			continue
		case string:
			n := len(stack)
			if n > 0 && stack[n-1].object && stack[n-1].key {
				if stack[n-1].names == nil {
					stack[n-1].names = map[string]struct{}{}
				}
				if _, twice := stack[n-1].names[t]; twice {
					return pactwire.Invalid(t, "the request body names %q twice in one object", t)
				}
				stack[n-1].names[t] = struct{}{}
				stack[n-1].key = false
				continue
			}
		}
		if n := len(stack); n > 0 && stack[n-1].object {
			stack[n-1].key = true
		}
	}
}
