package contract

import (
	"encoding/hex"
	"errors"
	"strings"

	"github.com/ethereum/go-ethereum/common"
)

var (
	errAddressShape    = errors.New("must be an address: 20 bytes of hex, such as 0x5fbdb2315678afecb367f032d93f642f64180aa3")
	errAddressChecksum = errors.New("has a wrong EIP-55 checksum: check the address, or write it all in lower case")
)

// ParseAddress reads an address: 40 hex digits, with or without 0x. Digits in mixed case must carry a right EIP-55
// checksum, so that a mistyped address is caught; all lower and all upper case carry none. The error is a phrase that
// follows the name of a field.
func ParseAddress(s string) (common.Address, error) {
	digits := trimHexPrefix(s)
	var address common.Address
	if len(digits) != 2*common.AddressLength {
		return common.Address{}, errAddressShape
	}
	if _, err := hex.Decode(address[:], []byte(digits)); err != nil {
		return common.Address{}, errAddressShape
	}
	if strings.ToLower(digits) != digits && strings.ToUpper(digits) != digits && address.Hex()[2:] != digits {
		return common.Address{}, errAddressChecksum
	}
	return address, nil
}

// FormatAddress writes an address the way the whole service does: lower-case hex with 0x.
func FormatAddress(a common.Address) string {
	return string(appendHex(make([]byte, 0, 2+2*len(a)), a[:]))
}

// trimHexPrefix takes a leading 0x or 0X off.
func trimHexPrefix(s string) string {
	if len(s) >= 2 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X') {
		return s[2:]
	}
	return s
}
