package contract

import "fmt"

// panicText says in words what a Panic(uint256) of the Solidity compiler means (Solidity documentation, "Panic via
// assert and Error via require").
func panicText(code uint64) string {
	text := ""
	switch code {
	case 0x00:
		text = "generic panic inserted by the compiler"
	case 0x01:
		text = "assertion failed"
	case 0x11:
		text = "arithmetic overflow or underflow"
	case 0x12:
		text = "division or modulo by zero"
	case 0x21:
		text = "value out of the range of its enum"
	case 0x22:
		text = "storage byte array wrongly encoded"
	case 0x31:
		text = "pop of an empty array"
	case 0x32:
		text = "array index out of bounds"
	case 0x41:
		text = "too much memory allocated, or an array too large"
	case 0x51:
		text = "call of an uninitialised internal function"
	default:
		return fmt.Sprintf("panic with the unknown code 0x%02x", code)
	}
	return fmt.Sprintf("%s (panic 0x%02x)", text, code)
}
