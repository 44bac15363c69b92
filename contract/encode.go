package contract

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	pactwire "github.com/pactwire/pactwire"
)

// maxEncodedSize bounds call data. Nodes take far less: a transaction of at most 128 kB, a call of a few megabytes.
const maxEncodedSize = 8 << 20

// inputPath is where arguments stand in a request.
const inputPath = "input"

// encoder writes ABI bytes straight from JSON text. It goes on after a mistake, so that one answer names several.
type encoder struct {
	problems
	buf  []byte
	path []segment
	dead bool        // too large: nothing more is written
	few  [12]segment // where path begins
}

// segment is one step of the path to the value at hand.
type segment struct {
	key   string
	index int // of an array element, when key is empty
}

// encodeArguments makes prefix plus the encoded parameters.
func encodeArguments(prefix []byte, params *abiType, input json.RawMessage, orArray bool) ([]byte, error) {
	text := bytes.TrimSpace(input)
	if len(text) == 0 || len(params.fields) == 0 && string(text) == "null" {
		text = []byte("{}")
	} else if !json.Valid(text) {
		return nil, pactwire.Invalid(inputPath, "is no valid JSON")
	}
	if text[0] != '{' && (!orArray || text[0] != '[') {
		return nil, pactwire.Invalid(inputPath, "must be an object with a member for each parameter")
	}
	size := len(prefix) + params.size
	e := &encoder{buf: make([]byte, size, size+len(text)+wordSize)}
	e.path = e.few[:0]
	copy(e.buf, prefix)
	e.tuple(params, text, len(prefix))
	if err := e.err(); err != nil {
		return nil, err
	}
	return e.buf, nil
}

// fail notes a mistake at the value at hand.
func (e *encoder) fail(format string, args ...any) { e.failAt("", format, args...) }

// failAt notes a mistake at a member of the value at hand.
func (e *encoder) failAt(member, format string, args ...any) {
	if e.full() {
		return
	}
	var b strings.Builder
	b.WriteString(inputPath)
	for _, s := range e.path {
		if s.key == "" {
			b.WriteString("[" + strconv.Itoa(s.index) + "]")
			continue
		}
		b.WriteString("." + s.key)
	}
	if member != "" {
		b.WriteString("." + member)
	}
	e.add(b.String(), format, args...)
}

// reserve appends zeros and returns where they begin.
func (e *encoder) reserve(size int) (at int, ok bool) {
	at = len(e.buf)
	if size > maxEncodedSize-at {
		e.fail("makes the call data larger than %d bytes", maxEncodedSize)
		e.dead = true
		return at, false
	}
	if size <= cap(e.buf)-at {
		e.buf = e.buf[:at+size]
		clear(e.buf[at:])
		return at, true
	}
	e.buf = append(e.buf, make([]byte, size)...)
	return at, true
}

// putInt writes a small number as a word.
func (e *encoder) putInt(at, n int) { binary.BigEndian.PutUint64(e.buf[at+24:], uint64(n)) }

// stopped tells that going on is of no use.
func (e *encoder) stopped() bool { return e.dead || e.full() }

// place encodes a value whose head is at a position within the tuple or array that begins at base.
func (e *encoder) place(t *abiType, value []byte, base, at int) {
	if value[0] == 'n' {
		e.fail("must not be null")
		return
	}
	if !t.dynamic {
		e.static(t, value, at)
		return
	}
	e.putInt(at, len(e.buf)-base)
	switch t.kind {
	case kindBytes:
		e.bytes(value)
	case kindString:
		e.text(value)
	case kindTuple:
		if begin, ok := e.reserve(t.size); ok {
			e.tuple(t, value, begin)
		}
	default:
		e.dynamicArray(t, value)
	}
}

// static encodes a value in place.
func (e *encoder) static(t *abiType, value []byte, at int) {
	switch t.kind {
	case kindUint, kindInt:
		e.integer(t, value, e.buf[at:at+wordSize])
	case kindBool:
		switch string(value) {
		case "true", `"true"`:
			e.buf[at+wordSize-1] = 1
		case "false", `"false"`:
		default:
			e.fail("must be true or false")
		}
	case kindAddress:
		e.address(value, at)
	case kindFixedBytes:
		e.fixedBytes(t, value, at)
	case kindTuple:
		e.tuple(t, value, at)
	case kindArray:
		if e.isArray(value) && e.hasLength(value, t.width) {
			e.elements(t.elem, value, at)
		}
	default: // bytes, string and slices are dynamic
		e.fail("has no static encoding")
	}
}

// tuple encodes the fields of a tuple whose head begins at base.
func (e *encoder) tuple(t *abiType, value []byte, base int) {
	var few [16][]byte
	values := few[:]
	if len(t.fields) > len(few) {
		values = make([][]byte, len(t.fields))
	}
	values = values[:len(t.fields)]
	switch value[0] {
	case '{':
		e.members(t, value, values)
	case '[':
		if !e.hasLength(value, len(t.fields)) {
			return
		}
		walk := elementsOf(value)
		for i := range values {
			values[i], _ = walk.next()
		}
	default:
		e.fail("must be an object with the members %s", t.keys())
		return
	}
	at := base
	for i := range t.fields {
		f := &t.fields[i]
		if values[i] != nil {
			e.path = append(e.path, segment{key: f.key})
			e.place(f.typ, values[i], base, at)
			e.path = e.path[:len(e.path)-1]
			if e.stopped() {
				return
			}
		}
		at += f.typ.head()
	}
}

// members finds the values of a tuple's fields in an object.
func (e *encoder) members(t *abiType, object []byte, values [][]byte) {
	walk := membersOf(object)
	for near := 0; !e.full(); near++ {
		quoted, value, more := walk.next()
		if !more {
			break
		}
		key, ok := unquote(quoted)
		if !ok {
			e.fail("has a key that is no Unicode text")
			continue
		}
		i := t.index(key, near)
		switch {
		case i < 0 && len(t.fields) == 0:
			e.failAt(shortKey(key), "is unknown: there are no parameters")
		case i < 0:
			e.failAt(shortKey(key), "is unknown; known are %s", t.keys())
		case values[i] != nil:
			e.failAt(t.fields[i].key, "is given twice")
		default:
			values[i], near = value, i
		}
	}
	for i := range values {
		if values[i] == nil {
			e.failAt(t.fields[i].key, "is required (%s)", shortType(t.fields[i].typ))
		}
	}
}

// dynamicArray appends a slice, or a fixed array of dynamic elements.
func (e *encoder) dynamicArray(t *abiType, value []byte) {
	if !e.isArray(value) {
		return
	}
	length := t.width
	if t.kind == kindSlice {
		length = countElements(value)
		at, ok := e.reserve(wordSize)
		if !ok {
			return
		}
		e.putInt(at, length)
	} else if !e.hasLength(value, length) {
		return
	}
	if head := t.elem.head(); head > 0 && length > maxEncodedSize/head {
		length = maxEncodedSize/head + 1 // surely refused below, and cannot overflow
	}
	if base, ok := e.reserve(length * t.elem.head()); ok {
		e.elements(t.elem, value, base)
	}
}

// elements encodes the elements of an array whose heads begin at base.
func (e *encoder) elements(elem *abiType, array []byte, base int) {
	walk := elementsOf(array)
	at := base
	for i := 0; ; i++ {
		value, ok := walk.next()
		if !ok || e.stopped() {
			return
		}
		e.path = append(e.path, segment{index: i})
		e.place(elem, value, base, at)
		e.path = e.path[:len(e.path)-1]
		at += elem.head()
	}
}

func (e *encoder) isArray(value []byte) bool {
	if value[0] != '[' {
		e.fail("must be an array")
		return false
	}
	return true
}

func (e *encoder) hasLength(array []byte, length int) bool {
	if n := countElements(array); n != length {
		e.fail("must have %d elements, has %d", length, n)
		return false
	}
	return true
}

// keys lists a tuple's keys for a message.
func (t *abiType) keys() string {
	const most = 20
	var b strings.Builder
	for i, f := range t.fields {
		if i > 0 {
			b.WriteString(", ")
		}
		if i == most {
			b.WriteString("…")
			break
		}
		b.WriteString(f.key)
	}
	return b.String()
}

// shortType is a type for a message.
func shortType(t *abiType) string { return quoteTail(t.String()) }

// shortKey bounds an unknown key within a path.
func shortKey(key []byte) string {
	const longest = 80
	if len(key) > longest {
		return fmt.Sprintf("%s…", strings.ToValidUTF8(string(key[:longest]), ""))
	}
	return string(key)
}
