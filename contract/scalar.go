package contract

// The encoding of values that are no arrays and no tuples.

func (e *encoder) integer(t *abiType, value, word []byte) {
	var (
		neg     bool
		n       number
		problem integerProblem
	)
	switch c := value[0]; {
	case c == '"':
		inside, ok := plainString(value)
		if !ok {
			inside = nil
		}
		neg, n, problem = parseIntegerText(inside)
	case c == '-' || isDigit(c):
		neg, n, problem = parseIntegerNumber(value)
	default:
		problem = integerMalformed
	}
	signed := t.kind == kindInt
	switch {
	case problem == integerMalformed:
		e.fail("must be an integer: a JSON number without fraction, or a string of decimal digits or 0x hex")
	case problem == integerTooLarge || !n.fits(neg, signed, t.width):
		low, high := integerRange(signed, t.width)
		e.fail("is out of range: %s goes from %s to %s", t.name, low, high)
	default:
		if neg {
			n.negate()
		}
		n.put(word)
	}
}

func (e *encoder) address(value []byte, at int) {
	text, ok := e.ascii(value)
	if !ok {
		e.fail("%s", errAddressShape)
		return
	}
	address, err := parseAddress(text)
	if err != nil {
		e.fail("%s", err)
		return
	}
	copy(e.buf[at+wordSize-len(address):], address[:])
}

// ascii returns the inside of a JSON string that cannot need an escape; short ones with escapes are unescaped all the
// same, because a client may escape what it likes.
func (e *encoder) ascii(value []byte) ([]byte, bool) {
	if value[0] != '"' {
		return nil, false
	}
	return unquote(value)
}

func (e *encoder) fixedBytes(t *abiType, value []byte, at int) {
	digits, ok := e.hex(value)
	if !ok {
		return
	}
	if len(digits) != 2*t.width {
		e.fail("must be exactly %d bytes of hex for %s, has %d", t.width, t.name, len(digits)/2)
		return
	}
	if !decodeHex(e.buf[at:], digits) {
		e.failHex()
	}
}

// bytes appends a dynamic byte string.
func (e *encoder) bytes(value []byte) {
	digits, ok := e.hex(value)
	if !ok {
		return
	}
	at, ok := e.reserveContent(len(digits) / 2)
	if ok && !decodeHex(e.buf[at:], digits) {
		e.failHex()
	}
}

// text appends a string.
func (e *encoder) text(value []byte) {
	if value[0] != '"' {
		e.fail("must be a string")
		return
	}
	text, ok := unquote(value)
	if !ok {
		e.fail("must be valid Unicode text")
		return
	}
	if at, ok := e.reserveContent(len(text)); ok {
		copy(e.buf[at:], text)
	}
}

// reserveContent appends a length and room for that many bytes, padded to whole words.
func (e *encoder) reserveContent(length int) (at int, ok bool) {
	at, ok = e.reserve(wordSize + (length+wordSize-1)/wordSize*wordSize)
	if ok {
		e.putInt(at, length)
	}
	return at + wordSize, ok
}

// hex returns the hex digits of a value, without 0x, an even number of them.
func (e *encoder) hex(value []byte) ([]byte, bool) {
	text, ok := e.ascii(value)
	if !ok {
		e.failHex()
		return nil, false
	}
	text = trimHexPrefix(text)
	if len(text)%2 != 0 {
		e.fail("must have two hex digits for each byte; their number is odd")
		return nil, false
	}
	return text, true
}

func (e *encoder) failHex() { e.fail("must be a string of hex digits with 0x, such as 0x00ff") }

// decodeHex writes the bytes of an even number of hex digits.
func decodeHex(dst, digits []byte) bool {
	for i := 0; i < len(digits); i += 2 {
		high, low := hexValue(digits[i]), hexValue(digits[i+1])
		if high < 0 || low < 0 {
			return false
		}
		dst[i/2] = byte(high<<4 | low)
	}
	return true
}
