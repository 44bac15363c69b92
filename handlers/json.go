package handlers

import (
	"bytes"
	"encoding/json"
	"errors"
	"unicode/utf8"

	pactwire "github.com/pactwire/pactwire"
)

// checkJSON refuses a body that is no single JSON value, nests too deeply, is no UTF-8, or names a member twice: readers of such a
// document would not agree on what it says (RFC 8259, section 4). It runs on each request, so it walks the bytes once and builds no values.
func checkJSON(body []byte) error {
	if !utf8.Valid(body) {
		return pactwire.Invalid("", "the request body must be UTF-8")
	}
	var (
		someLevels [16]nesting
		someNames  [32][]byte
	)
	w := jsonWalk{body: body, levels: someLevels[:0], names: someNames[:0]}
	valid, err := w.run()
	if valid {
		return err
	}
	var value json.RawMessage
	var syntax *json.SyntaxError
	if errors.As(json.Unmarshal(body, &value), &syntax) {
		line := 1 + bytes.Count(body[:min(int(syntax.Offset), len(body))], []byte("\n"))
		return pactwire.Invalid("", "the request body is not valid JSON: %s (line %d, byte %d)", syntax.Error(), line, syntax.Offset)
	}
	return pactwire.Invalid("", "the request body is not valid JSON")
}

// fewNames is how many names of one object are compared one by one; beyond it a set is faster.
const fewNames = 16

// nesting is an object or array that is open where the walk stands.
type nesting struct {
	object bool
	first  int                 // where its names begin
	set    map[string]struct{} // all its names, once they are many
}

// place is what may come next in a walk.
type place int

const (
	beforeValue  place = iota
	beforeItem         // a value, or the end of the array
	beforeMember       // a name, or the end of the object
	beforeName
	beforeColon
	afterValue
)

// jsonWalk is a walk over JSON text.
type jsonWalk struct {
	body   []byte
	i      int
	levels []nesting
	names  [][]byte // of all open objects, the innermost one's last
}

// run tells whether the text is valid JSON; the error is about valid JSON that is refused, or that was refused before its end was seen.
func (w *jsonWalk) run() (valid bool, err error) {
	next := beforeValue
	for w.i < len(w.body) {
		c := w.body[w.i]
		if c == ' ' || c == '\n' || c == '\r' || c == '\t' {
			w.i++
			continue
		}
		switch next {
		case beforeMember, beforeName:
			if c == '}' && next == beforeMember {
				next = w.leave()
				continue
			}
			if c != '"' {
				return false, nil
			}
			if ok, err := w.name(); !ok || err != nil {
				return ok, err
			}
			next = beforeColon
		case beforeColon:
			if c != ':' {
				return false, nil
			}
			w.i++
			next = beforeValue
		case afterValue:
			if len(w.levels) == 0 {
				return false, nil
			}
			object := w.levels[len(w.levels)-1].object
			switch {
			case c == ',' && object:
				next = beforeName
				w.i++
			case c == ',':
				next = beforeValue
				w.i++
			case c == '}' && object, c == ']' && !object:
				next = w.leave()
			default:
				return false, nil
			}
		default: // beforeValue, beforeItem
			switch {
			case c == '{' || c == '[':
				if len(w.levels) >= maxDepth {
					return true, pactwire.Invalid("", "the request body nests more than %d levels deep", maxDepth)
				}
				w.levels = append(w.levels, nesting{object: c == '{', first: len(w.names)})
				w.i++
				next = beforeItem
				if c == '{' {
					next = beforeMember
				}
			case c == ']' && next == beforeItem:
				next = w.leave()
			default:
				if !w.scalar(c) {
					return false, nil
				}
				next = afterValue
			}
		}
	}
	return next == afterValue && len(w.levels) == 0, nil
}

// leave closes the innermost object or array.
func (w *jsonWalk) leave() place {
	last := len(w.levels) - 1
	w.names = w.names[:w.levels[last].first]
	w.levels = w.levels[:last]
	w.i++
	return afterValue
}

// name reads a member's name and refuses one that its object has already.
func (w *jsonWalk) name() (valid bool, err error) {
	start := w.i
	escaped, ok := w.text()
	if !ok {
		return false, nil
	}
	name := w.body[start+1 : w.i-1]
	if escaped {
		var text string
		if json.Unmarshal(w.body[start:w.i], &text) != nil {
			return false, nil
		}
		name = []byte(text)
	}
	top := &w.levels[len(w.levels)-1]
	if top.repeats(w.names[top.first:], name) {
		return true, pactwire.Invalid(string(name), "the request body names %q twice in one object", name)
	}
	w.names = append(w.names, name)
	return true, nil
}

// scalar passes over a string, a number or a word.
func (w *jsonWalk) scalar(c byte) bool {
	switch {
	case c == '"':
		_, ok := w.text()
		return ok
	case c == '-' || c >= '0' && c <= '9':
		return w.number()
	}
	for _, word := range [...]string{"true", "false", "null"} {
		if rest := w.body[w.i:]; len(rest) >= len(word) && string(rest[:len(word)]) == word {
			w.i += len(word)
			return true
		}
	}
	return false
}

// text passes over a string.
func (w *jsonWalk) text() (escaped, ok bool) {
	for i := w.i + 1; i < len(w.body); i++ {
		switch c := w.body[i]; {
		case c == '"':
			w.i = i + 1
			return escaped, true
		case c < 0x20:
			return escaped, false
		case c == '\\':
			escaped = true
			i++
			if i >= len(w.body) {
				return escaped, false
			}
			switch w.body[i] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				if i+4 >= len(w.body) || !isHex(w.body[i+1:i+5]) {
					return escaped, false
				}
				i += 4
			default:
				return escaped, false
			}
		}
	}
	return escaped, false
}

func isHex(digits []byte) bool {
	for _, c := range digits {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
			return false
		}
	}
	return true
}

// number passes over a number.
func (w *jsonWalk) number() bool {
	if w.body[w.i] == '-' {
		w.i++
	}
	if w.i < len(w.body) && w.body[w.i] == '0' {
		w.i++
	} else if !w.digits() {
		return false
	}
	if w.i < len(w.body) && w.body[w.i] == '.' {
		w.i++
		if !w.digits() {
			return false
		}
	}
	if w.i < len(w.body) && w.body[w.i]|0x20 == 'e' {
		w.i++
		if w.i < len(w.body) && (w.body[w.i] == '+' || w.body[w.i] == '-') {
			w.i++
		}
		return w.digits()
	}
	return true
}

// digits passes over digits, at least one.
func (w *jsonWalk) digits() bool {
	start := w.i
	for w.i < len(w.body) && w.body[w.i] >= '0' && w.body[w.i] <= '9' {
		w.i++
	}
	return w.i > start
}

// repeats tells whether the object has the name already, and notes it for the next time.
func (n *nesting) repeats(earlier [][]byte, name []byte) bool {
	if len(earlier) < fewNames {
		for _, e := range earlier {
			if bytes.Equal(e, name) {
				return true
			}
		}
		return false
	}
	if n.set == nil {
		n.set = make(map[string]struct{}, 4*fewNames)
		for _, e := range earlier {
			n.set[string(e)] = struct{}{}
		}
	}
	_, again := n.set[string(name)]
	n.set[string(name)] = struct{}{}
	return again
}
