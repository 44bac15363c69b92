package contract

import "unicode/utf8"

const (
	hexDigits   = "0123456789abcdef"
	replacement = "\ufffd"
)

// appendHex appends bytes as 0x and lower-case hex.
func appendHex(dst, b []byte) []byte {
	dst = append(dst, '0', 'x')
	for _, c := range b {
		dst = append(dst, hexDigits[c>>4], hexDigits[c&15])
	}
	return dst
}

// appendQuotedHex appends bytes as a JSON string of 0x hex.
func appendQuotedHex(dst, b []byte) []byte {
	dst = append(dst, '"')
	dst = appendHex(dst, b)
	return append(dst, '"')
}

// appendQuoted appends text from the chain as a JSON string. Invalid UTF-8 and NUL become U+FFFD: PostgreSQL takes
// neither, and one hostile string must not stop a listener. The exact bytes stay on the chain.
func appendQuoted(dst, text []byte) []byte {
	dst = append(dst, '"')
	done := 0
	for i := 0; i < len(text); {
		c := text[i]
		if c >= 0x20 && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRune(text[i:])
			if r != utf8.RuneError || size > 1 {
				i += size
				continue
			}
		}
		dst = append(dst, text[done:i]...)
		switch {
		case c == 0 || c >= utf8.RuneSelf:
			dst = append(dst, replacement...)
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c == '\r':
			dst = append(dst, '\\', 'r')
		case c == '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		done = i
	}
	dst = append(dst, text[done:]...)
	return append(dst, '"')
}
