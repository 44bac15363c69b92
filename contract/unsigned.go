package contract

import (
	"encoding/binary"
	"encoding/json"
	"math/big"

	pactwire "github.com/pactwire/pactwire"
)

// ParseUnsigned reads an integer that is no argument of a contract, such as an amount or a gas limit, by the same rules: a JSON number of any size,
// a decimal string or a 0x hex string. path names it in the error; it must fit the given number of bits, at most 256.
func ParseUnsigned(path string, raw json.RawMessage, width int) (*big.Int, error) {
	var neg bool
	var n number
	problem := integerMalformed
	var text string
	switch {
	case len(raw) > 0 && raw[0] == '"':
		if json.Unmarshal(raw, &text) == nil {
			neg, n, problem = parseIntegerText([]byte(text))
		}
	case len(raw) > 0 && (raw[0] == '-' || isDigit(raw[0])):
		neg, n, problem = parseIntegerNumber(raw)
	}
	if problem == integerMalformed {
		return nil, pactwire.Invalid(path, "must be a whole number, as a JSON number, a decimal string or a 0x hex string")
	}
	if problem == integerTooLarge || !n.fits(neg, false, width) {
		top := new(big.Int).Lsh(big.NewInt(1), uint(width))
		return nil, pactwire.Invalid(path, "must be from 0 to %s", top.Sub(top, big.NewInt(1)))
	}
	var buf [32]byte
	for i, limb := range n {
		binary.BigEndian.PutUint64(buf[24-8*i:], limb)
	}
	return new(big.Int).SetBytes(buf[:]), nil
}
