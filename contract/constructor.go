package contract

import (
	"encoding/json"
	"strconv"
	"unicode/utf8"

	pactwire "github.com/pactwire/pactwire"
)

// EncodeConstructor encodes the arguments of the constructor in an ABI, given as an object by parameter name or as an
// array in order; they follow a contract's bytecode in its deployment. An ABI without a constructor takes none.
func EncodeConstructor(abi, args json.RawMessage) ([]byte, error) {
	_, params, err := constructorOf(abi)
	if err != nil {
		return nil, err
	}
	return encodeArguments(nil, params, args, true)
}

// EncodeConstructorStrings is EncodeConstructor for arguments as they stand on a command line: arrays and tuples are
// JSON, everything else is plain text.
func EncodeConstructorStrings(abi json.RawMessage, args []string) ([]byte, error) {
	names, params, err := constructorOf(abi)
	if err != nil {
		return nil, err
	}
	if len(args) != len(params.fields) {
		if len(params.fields) == 0 {
			return nil, pactwire.Invalid(inputPath, "the constructor takes no arguments, %d are given", len(args))
		}
		return nil, pactwire.Invalid(inputPath, "the constructor takes %d arguments (%s), %d are given", len(params.fields), names, len(args))
	}
	list := []byte{'['}
	for i, arg := range args {
		if i > 0 {
			list = append(list, ',')
		}
		text, err := argumentJSON(params.fields[i], arg)
		if err != nil {
			return nil, err
		}
		list = append(list, text...)
	}
	return encodeArguments(nil, params, append(list, ']'), true)
}

// argumentJSON turns one argument of a command line into JSON.
func argumentJSON(f field, arg string) ([]byte, error) {
	path := inputPath + "." + f.key
	switch f.typ.kind {
	case kindArray, kindSlice, kindTuple:
		if !json.Valid([]byte(arg)) {
			return nil, pactwire.Invalid(path, "must be JSON for %s", shortType(f.typ))
		}
		return []byte(arg), nil
	}
	if !utf8.ValidString(arg) {
		return nil, pactwire.Invalid(path, "must be valid Unicode text")
	}
	return json.Marshal(arg)
}

// constructorOf finds the constructor's parameters; names are its types and names, for messages.
func constructorOf(abi json.RawMessage) (names string, params *abiType, err error) {
	entries, err := splitABI(abi)
	if err != nil {
		return "", nil, err
	}
	for i, raw := range entries {
		path := abiPath + "[" + strconv.Itoa(i) + "]"
		entry, err := parseEntry(path, raw)
		if err != nil {
			return "", nil, err
		}
		if entry.Type != entryConstructor {
			continue
		}
		_, params, err := (&abiReader{}).params(path+".inputs", entry.Type, entry.Inputs)
		if err != nil {
			return "", nil, err
		}
		for n, f := range params.fields {
			if n > 0 {
				names += ", "
			}
			names += f.typ.String() + " " + f.key
		}
		return quoteTail(names), params, nil
	}
	params, err = newTuple(nil, nil)
	return "", params, err
}
