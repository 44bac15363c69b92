package contract

import (
	"unicode/utf16"
	"unicode/utf8"
)

// The functions here walk JSON text that json.Valid has accepted, without building values from it: a request's values
// go from their text straight into ABI bytes.

// skipSpace returns the position of the next byte that is no white space.
func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// skipString returns the position after the string that starts at i.
func skipString(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(b)
}

// skipValue returns the position after the value that starts at i.
func skipValue(b []byte, i int) int {
	if i >= len(b) {
		return len(b)
	}
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		depth := 0
		for i < len(b) {
			switch b[i] {
			case '"':
				i = skipString(b, i)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				depth--
				if depth == 0 {
					return i + 1
				}
			}
			i++
		}
		return len(b)
	}
	for i < len(b) {
		switch b[i] {
		case ',', '}', ']', ' ', '\n', '\t', '\r':
			return i
		}
		i++
	}
	return i
}

// elements walks an array.
type elements struct {
	b []byte
	i int
}

// elementsOf starts a walk over an array's text.
func elementsOf(array []byte) elements { return elements{b: array, i: 1} }

// next returns the next element's text.
func (e *elements) next() ([]byte, bool) {
	e.i = skipSpace(e.b, e.i)
	if e.i < len(e.b) && e.b[e.i] == ',' {
		e.i = skipSpace(e.b, e.i+1)
	}
	if e.i >= len(e.b) || e.b[e.i] == ']' {
		return nil, false
	}
	start := e.i
	e.i = skipValue(e.b, start)
	return e.b[start:e.i], true
}

// countElements returns the length of an array.
func countElements(array []byte) int {
	n := 0
	for walk := elementsOf(array); ; n++ {
		if _, ok := walk.next(); !ok {
			return n
		}
	}
}

// members walks an object.
type members struct {
	b []byte
	i int
}

// membersOf starts a walk over an object's text.
func membersOf(object []byte) members { return members{b: object, i: 1} }

// next returns the next member: its key with the quotes, and its value's text.
func (m *members) next() (key, value []byte, ok bool) {
	m.i = skipSpace(m.b, m.i)
	if m.i < len(m.b) && m.b[m.i] == ',' {
		m.i = skipSpace(m.b, m.i+1)
	}
	if m.i >= len(m.b) || m.b[m.i] == '}' {
		return nil, nil, false
	}
	start := m.i
	m.i = skipString(m.b, start)
	key = m.b[start:m.i]
	m.i = skipSpace(m.b, skipSpace(m.b, m.i)+1) // over the colon
	start = m.i
	m.i = skipValue(m.b, start)
	return key, m.b[start:m.i], true
}

// plainString returns the inside of a quoted string that needs no unescaping; ok is false when it holds an escape.
func plainString(quoted []byte) (inside []byte, ok bool) {
	inside = quoted[1 : len(quoted)-1]
	for _, c := range inside {
		if c == '\\' {
			return nil, false
		}
	}
	return inside, true
}

// unquote returns a string's characters; it copies only when there are escapes. ok is false when the string is no
// Unicode text: invalid UTF-8, or half of a surrogate pair. Such a string cannot be kept exactly, and replacing
// characters would change a value that somebody signs.
func unquote(quoted []byte) (text []byte, ok bool) {
	if inside, plain := plainString(quoted); plain {
		return inside, utf8.Valid(inside)
	}
	inside := quoted[1 : len(quoted)-1]
	text = make([]byte, 0, len(inside))
	for i := 0; i < len(inside); i++ {
		if inside[i] != '\\' {
			text = append(text, inside[i])
			continue
		}
		i++
		switch inside[i] {
		case 'b':
			text = append(text, '\b')
		case 'f':
			text = append(text, '\f')
		case 'n':
			text = append(text, '\n')
		case 'r':
			text = append(text, '\r')
		case 't':
			text = append(text, '\t')
		case 'u':
			r := hexRune(inside[i+1:])
			i += 4
			if utf16.IsSurrogate(r) {
				if len(inside) < i+7 || inside[i+1] != '\\' || inside[i+2] != 'u' {
					return nil, false
				}
				r = utf16.DecodeRune(r, hexRune(inside[i+3:]))
				if r == utf8.RuneError {
					return nil, false
				}
				i += 6
			}
			text = utf8.AppendRune(text, r)
		default: // quote, backslash, slash
			text = append(text, inside[i])
		}
	}
	return text, utf8.Valid(text)
}

// hexRune reads four hex digits.
func hexRune(s []byte) rune {
	r := rune(0)
	for _, c := range s[:4] {
		r = r<<4 | rune(hexValue(c))
	}
	return r
}

// hexValue is the value of a hex digit, or -1.
func hexValue(c byte) int {
	switch {
	case isDigit(c):
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
