package contract

import (
	"encoding/binary"
	"math/big"
	"math/bits"
)

// number is an unsigned 256-bit integer in four limbs, the least significant first. It exists because a decimal string
// is read or written for nearly every value that passes, and math/big allocates for each.
type number [4]uint64

// integerProblem says why a text is no usable integer.
type integerProblem int

const (
	integerFine integerProblem = iota
	integerMalformed
	integerTooLarge // beyond 256 bits, so beyond every type
)

const (
	chunkDigits      = 19 // decimal digits that surely fit a uint64
	chunk            = 10_000_000_000_000_000_000
	maxDecimalDigits = 78 // of 2^256
	maxHexDigits     = 64
	exponentBound    = 1 << 30 // longer than any request, so a larger exponent cannot be undone by leading zeros
)

// mulAdd sets n to n*m+a and reports an overflow.
func (n *number) mulAdd(m, a uint64) bool {
	carry := a
	for i := range n {
		hi, lo := bits.Mul64(n[i], m)
		var c uint64
		n[i], c = bits.Add64(lo, carry, 0)
		carry = hi + c
	}
	return carry != 0
}

// divMod sets n to n/d and returns the remainder.
func (n *number) divMod(d uint64) uint64 {
	var rem uint64
	for i := len(n) - 1; i >= 0; i-- {
		n[i], rem = bits.Div64(rem, n[i], d)
	}
	return rem
}

func (n *number) bitLen() int {
	for i := len(n) - 1; i >= 0; i-- {
		if n[i] != 0 {
			return i*64 + bits.Len64(n[i])
		}
	}
	return 0
}

// negate sets n to its two's complement.
func (n *number) negate() {
	carry := uint64(1)
	for i := range n {
		n[i], carry = bits.Add64(^n[i], 0, carry)
	}
}

// put writes n as a big-endian word.
func (n *number) put(word []byte) {
	for i := range n {
		binary.BigEndian.PutUint64(word[(3-i)*8:], n[i])
	}
}

// loadNumber reads a big-endian word.
func loadNumber(word []byte) number {
	_ = word[31]
	return number{
		binary.BigEndian.Uint64(word[24:]), binary.BigEndian.Uint64(word[16:]),
		binary.BigEndian.Uint64(word[8:]), binary.BigEndian.Uint64(word),
	}
}

// appendDecimal appends n in decimal.
func (n number) appendDecimal(dst []byte) []byte {
	var buf [5 * chunkDigits]byte
	at := len(buf)
	for {
		last := n[1]|n[2]|n[3] == 0 && n[0] < chunk
		rest := n[0]
		if !last {
			rest = n.divMod(chunk)
		}
		for digits := 0; last && (rest > 0 || digits == 0) || !last && digits < chunkDigits; digits++ {
			at--
			buf[at] = byte('0' + rest%10)
			rest /= 10
		}
		if last {
			return append(dst, buf[at:]...)
		}
	}
}

// parseIntegerText reads the integer in a JSON string: decimal, or 0x hex; no exponent, no plus sign, no space.
func parseIntegerText(s []byte) (neg bool, n number, problem integerProblem) {
	if len(s) > 0 && s[0] == '-' {
		neg, s = true, s[1:]
	}
	if len(s) > 2 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X') {
		n, problem = parseHexDigits(s[2:])
		return neg, n, problem
	}
	n, problem = parseDecimalDigits(s)
	return neg, n, problem
}

// parseIntegerNumber reads the integer in a JSON number. A fraction and an exponent are fine as long as the value is an
// exact integer (1e18, 1.50e2, 2.0).
func parseIntegerNumber(s []byte) (neg bool, n number, problem integerProblem) {
	if len(s) > 0 && s[0] == '-' {
		neg, s = true, s[1:]
	}
	whole := 0
	for whole < len(s) && isDigit(s[whole]) {
		whole++
	}
	if whole == len(s) {
		n, problem = parseDecimalDigits(s)
		return neg, n, problem
	}
	n, problem = parseScientific(s[:whole], s[whole:])
	return neg, n, problem
}

func parseScientific(whole, rest []byte) (n number, problem integerProblem) {
	digits, exponent := whole, 0
	if rest[0] == '.' {
		end := 1
		for end < len(rest) && isDigit(rest[end]) {
			end++
		}
		digits = append(append(make([]byte, 0, len(whole)+end), whole...), rest[1:end]...)
		exponent = 1 - end
		rest = rest[end:]
	}
	if len(rest) > 0 { // e or E, an optional sign, digits
		exponent += parseExponent(rest[1:])
	}
	for len(digits) > 0 && digits[0] == '0' {
		digits = digits[1:]
	}
	for len(digits) > 0 && digits[len(digits)-1] == '0' {
		digits = digits[:len(digits)-1]
		exponent++
	}
	switch {
	case len(digits) == 0:
		return n, integerFine
	case exponent < 0:
		return n, integerMalformed
	case exponent > maxDecimalDigits || len(digits)+exponent > maxDecimalDigits:
		return n, integerTooLarge
	}
	n, problem = parseDecimalDigits(digits)
	for ; exponent > 0 && problem == integerFine; exponent-- {
		if n.mulAdd(10, 0) {
			problem = integerTooLarge
		}
	}
	return n, problem
}

func parseExponent(s []byte) int {
	neg := false
	if len(s) > 0 && (s[0] == '+' || s[0] == '-') {
		neg, s = s[0] == '-', s[1:]
	}
	exponent := 0
	for _, c := range s {
		exponent = min(exponent*10+int(c-'0'), exponentBound)
	}
	if neg {
		return -exponent
	}
	return exponent
}

func parseDecimalDigits(s []byte) (n number, problem integerProblem) {
	if len(s) == 0 {
		return n, integerMalformed
	}
	for _, c := range s {
		if !isDigit(c) {
			return n, integerMalformed
		}
	}
	for len(s) > 0 && s[0] == '0' {
		s = s[1:]
	}
	if len(s) > maxDecimalDigits {
		return n, integerTooLarge
	}
	for len(s) > 0 {
		take := min(len(s), chunkDigits)
		value, scale := uint64(0), uint64(1)
		for _, c := range s[:take] {
			value = value*10 + uint64(c-'0')
			scale *= 10
		}
		if n.mulAdd(scale, value) {
			return n, integerTooLarge
		}
		s = s[take:]
	}
	return n, integerFine
}

func parseHexDigits(s []byte) (n number, problem integerProblem) {
	for len(s) > 1 && s[0] == '0' {
		s = s[1:]
	}
	for _, c := range s {
		if hexValue(c) < 0 {
			return n, integerMalformed
		}
	}
	if len(s) > maxHexDigits {
		return n, integerTooLarge
	}
	for _, c := range s {
		n.mulAdd(16, uint64(hexValue(c)))
	}
	return n, integerFine
}

// fits tells whether the value fits an integer type of that width.
func (n *number) fits(neg, signed bool, width int) bool {
	length := n.bitLen()
	switch {
	case !neg && signed:
		return length < width
	case !neg:
		return length <= width
	case !signed:
		return length == 0 // minus zero
	}
	if length < width {
		return true
	}
	// The smallest value of the type is the one whose magnitude fills the width: a one followed by zeros.
	return length == width && n.trailingZeros() == width-1
}

func (n *number) trailingZeros() int {
	for i, limb := range n {
		if limb != 0 {
			return i*64 + bits.TrailingZeros64(limb)
		}
	}
	return 256
}

// integerRange are the bounds of an integer type, for messages.
func integerRange(signed bool, width int) (low, high *big.Int) {
	one := big.NewInt(1)
	if !signed {
		return new(big.Int), new(big.Int).Sub(new(big.Int).Lsh(one, uint(width)), one)
	}
	half := new(big.Int).Lsh(one, uint(width-1))
	return new(big.Int).Neg(half), new(big.Int).Sub(half, one)
}
