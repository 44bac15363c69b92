package chain

import (
	"errors"

	"github.com/ethereum/go-ethereum/common"
)

// The functions here walk JSON text that the decoder has found well-formed. They never read beyond it, whatever it is.

var errBadMember = errors.New("json: an object of the node has a member that is not what it must be")

// scanObject calls member for each member of the object that starts at i; value is the text of the member's value. It returns where the object ends.
func scanObject(b []byte, i int, member func(key string, value []byte) bool) (int, error) {
	if i >= len(b) || b[i] != '{' {
		return i, errBadMember
	}
	for i = skipBlank(b, i+1); i < len(b) && b[i] != '}'; {
		keyEnd := skipValue(b, i)
		if keyEnd-i < 2 || b[i] != '"' {
			return i, errBadMember
		}
		key := b[i+1 : keyEnd-1]
		i = skipBlank(b, keyEnd)
		if i >= len(b) || b[i] != ':' {
			return i, errBadMember
		}
		i = skipBlank(b, i+1)
		end := skipValue(b, i)
		if end == i || !member(string(key), b[i:end]) {
			return i, errBadMember
		}
		if i = skipBlank(b, end); i < len(b) && b[i] == ',' {
			i = skipBlank(b, i+1)
		}
	}
	if i >= len(b) {
		return i, errBadMember
	}
	return i + 1, nil
}

func skipBlank(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// skipValue returns where the value that starts at i ends.
func skipValue(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			for i++; i < len(b) && b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
			i++
		case '{', '[':
			depth++
			i++
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
			i++
		case ',', ' ', '\n', '\t', '\r', ':':
			if depth == 0 {
				return i
			}
			i++
			continue
		default: // a literal or a number
			for i++; i < len(b) && b[i] != ',' && b[i] != '}' && b[i] != ']' && b[i] > ' '; {
				i++
			}
		}
		if depth == 0 {
			return min(i, len(b))
		}
	}
	return min(i, len(b))
}

// hexDigit is the value of a hexadecimal digit, or 255.
func hexDigit(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10
	}
	return 255
}

// quotedHex is what stands between "0x and ".
func quotedHex(value []byte) ([]byte, bool) {
	n := len(value)
	if n < 4 || value[0] != '"' || value[n-1] != '"' || value[1] != '0' || value[2] != 'x' && value[2] != 'X' {
		return nil, false
	}
	return value[3 : n-1], true
}

func decodeHex(dst, digits []byte) bool {
	for i := range dst {
		high, low := hexDigit(digits[2*i]), hexDigit(digits[2*i+1])
		if high|low > 15 {
			return false
		}
		dst[i] = high<<4 | low
	}
	return true
}

// hexInto reads exactly as many bytes as dst has.
func hexInto(dst, value []byte) bool {
	digits, ok := quotedHex(value)
	return ok && len(digits) == 2*len(dst) && decodeHex(dst, digits)
}

func hexBytes(value []byte) ([]byte, bool) {
	digits, ok := quotedHex(value)
	if !ok || len(digits)%2 != 0 {
		return nil, false
	}
	out := make([]byte, len(digits)/2)
	return out, decodeHex(out, digits)
}

// hexNumber reads a number below 2^63.
func hexNumber(value []byte) (int64, bool) {
	digits, ok := quotedHex(value)
	if !ok || len(digits) == 0 {
		return 0, false
	}
	n := int64(0)
	for _, c := range digits {
		d := hexDigit(c)
		if d > 15 || n >= 1<<59 {
			return 0, false
		}
		n = n<<4 | int64(d)
	}
	return n, true
}

// hexHashes reads a list of 32-byte hashes.
func hexHashes(value []byte) ([]common.Hash, bool) {
	if len(value) == 0 || value[0] != '[' {
		return nil, false
	}
	var list []common.Hash
	for i := skipBlank(value, 1); i < len(value) && value[i] != ']'; {
		end := skipValue(value, i)
		var h common.Hash
		if !hexInto(h[:], value[i:end]) {
			return nil, false
		}
		if list == nil {
			list = make([]common.Hash, 0, 4) // a log has at most four
		}
		list = append(list, h)
		if i = skipBlank(value, end); i < len(value) && value[i] == ',' {
			i = skipBlank(value, i+1)
		}
	}
	return list, true
}
