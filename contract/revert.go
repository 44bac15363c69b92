package contract

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/ethereum/go-ethereum/crypto"

	pactwire "github.com/pactwire/pactwire"
)

const (
	maxReasonLength = 1000      // characters of a reason
	maxRevertArgs   = 64 << 10  // bytes of decoded arguments; an error with more is shown as raw data
	maxRevertData   = 256 << 10 // bytes of raw data that are shown
)

// The errors that the Solidity compiler itself uses.
var (
	errorSelector = [4]byte{0x08, 0xc3, 0x79, 0xa0} // Error(string)
	panicSelector = [4]byte{0x4e, 0x48, 0x7b, 0x71} // Panic(uint256)
)

// ErrorTable decodes reverts with the custom errors of one interface. It is immutable.
type ErrorTable struct {
	bySelector map[[4]byte]*compiledError
}

type compiledError struct {
	name      string
	signature string
	selector  [4]byte
	args      *abiType
}

// NewErrorTable makes the table of some custom errors.
func NewErrorTable(errs []Error) (*ErrorTable, error) {
	r := &schemaReader{}
	compiled := make([]*compiledError, 0, len(errs))
	for i := range errs {
		compiled = append(compiled, compileError(r, fmt.Sprintf("errors[%d]", i), errs[i]))
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	return newErrorTable(compiled), nil
}

func newErrorTable(errs []*compiledError) *ErrorTable {
	table := &ErrorTable{bySelector: make(map[[4]byte]*compiledError, len(errs))}
	for _, e := range errs {
		if e != nil && table.bySelector[e.selector] == nil {
			table.bySelector[e.selector] = e
		}
	}
	return table
}

// compileError returns nil when it has noted a mistake.
func compileError(r *schemaReader, path string, e Error) *compiledError {
	args := r.customError(path, &e)
	if args == nil {
		return nil
	}
	compiled := &compiledError{name: e.Name, signature: e.Name + args.String(), args: args}
	copy(compiled.selector[:], crypto.Keccak256([]byte(compiled.signature)))
	return compiled
}

// DecodeRevert says what revert data means, given the custom errors that may be in it; those that are malformed are
// passed over. Keep an ErrorTable where it is called often.
func DecodeRevert(data []byte, errs []Error) *pactwire.Revert {
	compiled := make([]*compiledError, 0, len(errs))
	for i := range errs {
		compiled = append(compiled, compileError(&schemaReader{}, "errors", errs[i]))
	}
	return newErrorTable(compiled).Decode(data)
}

// Decode says what revert data means. It takes any bytes; a nil table knows the compiler's own errors only.
func (t *ErrorTable) Decode(data []byte) *pactwire.Revert {
	revert := &pactwire.Revert{Data: string(appendHex(nil, data[:min(len(data), maxRevertData)]))}
	if len(data) == 0 {
		revert.Reason = "the contract reverted without a reason"
		return revert
	}
	if len(data) >= 4 {
		selector := [4]byte(data)
		if t.decodeBuiltin(revert, selector, data[4:]) || t.decodeCustom(revert, selector, data[4:]) {
			return revert
		}
	}
	revert.Reason = "the contract reverted with data that the interface does not describe"
	return revert
}

// decodeBuiltin handles the compiler's own errors.
func (t *ErrorTable) decodeBuiltin(revert *pactwire.Revert, selector [4]byte, args []byte) bool {
	switch selector {
	case errorSelector:
		d := newRevertDecoder(args)
		if d.place(&abiType{kind: kindString, name: stringName, dynamic: true}, 0, 0) != nil {
			return false
		}
		var message string
		if json.Unmarshal(d.out, &message) != nil {
			return false
		}
		revert.Name, revert.Signature = "Error", "Error(string)"
		revert.Args = json.RawMessage(`{"message":` + string(d.out) + `}`)
		revert.Reason = shortReason(message)
		if strings.TrimSpace(message) == "" {
			revert.Reason = "the contract reverted with an empty reason"
		}
		return true
	case panicSelector:
		if len(args) < wordSize {
			return false
		}
		code := loadNumber(args[:wordSize])
		revert.Name, revert.Signature = "Panic", "Panic(uint256)"
		revert.Args = json.RawMessage(`{"code":"` + string(code.appendDecimal(nil)) + `"}`)
		revert.Reason = "panic with an unknown code"
		if code.bitLen() <= 64 {
			revert.Reason = panicText(code[0])
		}
		return true
	}
	return false
}

// decodeCustom handles the interface's errors.
func (t *ErrorTable) decodeCustom(revert *pactwire.Revert, selector [4]byte, args []byte) bool {
	if t == nil {
		return false
	}
	e := t.bySelector[selector]
	if e == nil {
		return false
	}
	d := newRevertDecoder(args)
	if d.at(e.args, 0) != nil || len(d.out) > maxRevertArgs {
		return false
	}
	revert.Name, revert.Signature = e.name, e.signature
	revert.Args = json.RawMessage(d.out)
	revert.Reason = shortReason(e.reason(d.out))
	return true
}

// reason writes the error as one readable line: InsufficientBalance(available: 5, required: 10).
func (e *compiledError) reason(args []byte) string {
	var b strings.Builder
	b.WriteString(e.name)
	b.WriteByte('(')
	walk := membersOf(args)
	for i := 0; ; i++ {
		_, value, ok := walk.next()
		if !ok {
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		if key := e.args.fields[i].key; !isDigit(key[0]) {
			b.WriteString(key + ": ")
		}
		if typ := e.args.fields[i].typ.kind; typ != kindString && value[0] == '"' {
			value = value[1 : len(value)-1] // numbers, addresses and bytes read better without quotes
		}
		b.Write(value)
	}
	b.WriteByte(')')
	return b.String()
}

func newRevertDecoder(data []byte) *decoder {
	return &decoder{data: data, limit: maxRevertArgs}
}

// shortReason bounds a reason and keeps it on one line.
func shortReason(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' || r == '\t' {
			return ' '
		}
		return r
	}, s)
	if utf8.RuneCountInString(s) > maxReasonLength {
		return string([]rune(s)[:maxReasonLength]) + "…"
	}
	return s
}
