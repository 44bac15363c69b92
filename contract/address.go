package contract

import (
	"errors"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

var (
	errAddressShape    = errors.New("must be an address: 20 bytes of hex, such as 0x5fbdb2315678afecb367f032d93f642f64180aa3")
	errAddressChecksum = errors.New("has a wrong EIP-55 checksum: check the address, or write it all in lower case")
)

// ParseAddress reads an address: 40 hex digits, with or without 0x. Digits in mixed case must carry a right EIP-55
// checksum, so that a mistyped address is caught; all lower and all upper case carry none. The error is a phrase that
// follows the name of a field.
func ParseAddress(s string) (common.Address, error) {
	if len(s) > 2+2*common.AddressLength {
		return common.Address{}, errAddressShape
	}
	return parseAddress([]byte(s))
}

func parseAddress(text []byte) (common.Address, error) {
	var address common.Address
	digits := trimHexPrefix(text)
	if len(digits) != 2*common.AddressLength || !decodeHex(address[:], digits) {
		return common.Address{}, errAddressShape
	}
	if !checksumFits(digits) {
		return common.Address{}, errAddressChecksum
	}
	return address, nil
}

// checksumFits checks the case of 40 hex digits (EIP-55): a letter is upper case where the hash of the lower-case digits
// has a nibble of 8 or more.
func checksumFits(digits []byte) bool {
	var lower [2 * common.AddressLength]byte
	uppers, lowers := false, false
	for i, c := range digits {
		switch {
		case c >= 'A' && c <= 'F':
			uppers = true
			c += 'a' - 'A'
		case c >= 'a' && c <= 'f':
			lowers = true
		}
		lower[i] = c
	}
	if !uppers || !lowers {
		return true
	}
	hash := crypto.Keccak256(lower[:])
	for i, c := range digits {
		nibble := hash[i/2] >> (4 * (1 - i%2)) & 15
		if !isDigit(c) && (c <= 'F') != (nibble >= 8) {
			return false
		}
	}
	return true
}

// FormatAddress writes an address the way the whole service does: lower-case hex with 0x.
func FormatAddress(a common.Address) string {
	return string(appendHex(make([]byte, 0, 2+2*len(a)), a[:]))
}

// trimHexPrefix takes a leading 0x or 0X off.
func trimHexPrefix(text []byte) []byte {
	if len(text) >= 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X') {
		return text[2:]
	}
	return text
}
