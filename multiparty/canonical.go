package multiparty

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth bounds how deep JSON may nest.
const maxDepth = 100

// errJSON is the class of all mistakes that Canonical finds.
var errJSON = errors.New("not usable as canonical JSON")

// Canonical returns the one form of a JSON text that is hashed (after RFC 8785):
//
//   - no white space;
//   - the members of an object sorted by their names, compared as UTF-16 code units;
//   - strings in UTF-8 with only the escapes that JSON demands: \" \\ \b \t \n \f \r and \u00xx in lower case for other control characters;
//   - numbers exactly as they were given. This differs from RFC 8785, which would force them through a float64 and lose the
//     digits of large integers. So 1.0, 1 and 1e0 have different hashes.
//
// Refused are texts that do not mean the same to everybody: duplicate names, invalid UTF-8, halves of surrogate pairs; and more than 100 levels.
func Canonical(text []byte) ([]byte, error) {
	c := canonicalizer{in: text, out: make([]byte, 0, len(text))}
	if err := c.value(0); err != nil {
		return nil, err
	}
	c.space()
	if c.at != len(c.in) {
		return nil, c.wrong("something follows the value")
	}
	return c.out, nil
}

type canonicalizer struct {
	in  []byte
	at  int
	out []byte
}

func (c *canonicalizer) wrong(what string) error {
	return fmt.Errorf("%w: %s at byte %d", errJSON, what, c.at)
}

func (c *canonicalizer) space() {
	for c.at < len(c.in) && strings.IndexByte(" \t\r\n", c.in[c.at]) >= 0 {
		c.at++
	}
}

// next returns the next byte that is no white space, and 0 at the end.
func (c *canonicalizer) next() byte {
	c.space()
	if c.at == len(c.in) {
		return 0
	}
	return c.in[c.at]
}

func (c *canonicalizer) value(depth int) error {
	if depth > maxDepth {
		return c.wrong("too many levels")
	}
	switch b := c.next(); {
	case b == '{':
		return c.object(depth)
	case b == '[':
		return c.array(depth)
	case b == '"':
		return c.text(nil)
	case b == '-' || (b >= '0' && b <= '9'):
		return c.number()
	}
	for _, word := range []string{"true", "false", "null"} {
		if strings.HasPrefix(string(c.in[c.at:min(len(c.in), c.at+len(word))]), word) {
			c.at += len(word)
			c.out = append(c.out, word...)
			return nil
		}
	}
	return c.wrong("no value")
}

func (c *canonicalizer) array(depth int) error {
	c.at++
	c.out = append(c.out, '[')
	for first := true; ; first = false {
		switch b := c.next(); {
		case b == ']' && first:
			c.at++
			c.out = append(c.out, ']')
			return nil
		case first:
		case b == ']':
			c.at++
			c.out = append(c.out, ']')
			return nil
		case b == ',':
			c.at++
			c.out = append(c.out, ',')
		default:
			return c.wrong("no comma between elements")
		}
		if err := c.value(depth + 1); err != nil {
			return err
		}
	}
}

// member is where one member of an object stands in the output.
type member struct {
	name       string
	start, end int
}

func (c *canonicalizer) object(depth int) error {
	c.at++
	begin := len(c.out)
	var members []member
	sorted := true
	for first := true; ; first = false {
		b := c.next()
		if b == '}' {
			c.at++
			break
		}
		if !first {
			if b != ',' {
				return c.wrong("no comma between members")
			}
			c.at++
			b = c.next()
		}
		if b != '"' {
			return c.wrong("no name")
		}
		c.out = append(c.out, ',')
		m := member{start: len(c.out)}
		var name []byte
		if err := c.text(&name); err != nil {
			return err
		}
		m.name = string(name)
		if c.next() != ':' {
			return c.wrong("no colon after a name")
		}
		c.at++
		c.out = append(c.out, ':')
		if err := c.value(depth + 1); err != nil {
			return err
		}
		m.end = len(c.out)
		sorted = sorted && (first || compareUTF16(members[len(members)-1].name, m.name) < 0)
		members = append(members, m)
	}
	if !sorted {
		if err := c.sort(begin, members); err != nil {
			return err
		}
	}
	if len(members) == 0 {
		c.out = append(c.out, '{', '}')
		return nil
	}
	c.out[begin] = '{' // in the place of the first comma
	c.out = append(c.out, '}')
	return nil
}

// sort brings the members that were written from begin on into their order.
func (c *canonicalizer) sort(begin int, members []member) error {
	slices.SortStableFunc(members, func(a, b member) int { return compareUTF16(a.name, b.name) })
	old := slices.Clone(c.out[begin:])
	c.out = c.out[:begin]
	for i, m := range members {
		if i > 0 && members[i-1].name == m.name {
			return c.wrong(fmt.Sprintf("the name %.80q twice in an object that ends", m.name))
		}
		c.out = append(c.out, ',')
		c.out = append(c.out, old[m.start-begin:m.end-begin]...)
	}
	return nil
}

// compareUTF16 compares texts as RFC 8785 wants it: by UTF-16 code units, in which characters beyond U+FFFF come before U+E000.
func compareUTF16(a, b string) int {
	for a != "" && b != "" {
		ra, na := utf8.DecodeRuneInString(a)
		rb, nb := utf8.DecodeRuneInString(b)
		if ra != rb {
			if (ra > 0xffff) != (rb > 0xffff) {
				ra, rb = firstUnit(ra), firstUnit(rb)
			}
			return int(ra) - int(rb)
		}
		a, b = a[na:], b[nb:]
	}
	return len(a) - len(b)
}

func firstUnit(r rune) rune {
	if r > 0xffff {
		r, _ = utf16.EncodeRune(r)
	}
	return r
}

// text reads a string and writes it. The characters go to decoded too, if it is not nil.
func (c *canonicalizer) text(decoded *[]byte) error {
	c.at++
	c.out = append(c.out, '"')
	for {
		start := c.at
		for c.at < len(c.in) && c.in[c.at] >= 0x20 && c.in[c.at] != '"' && c.in[c.at] != '\\' && c.in[c.at] < utf8.RuneSelf {
			c.at++
		}
		c.out = append(c.out, c.in[start:c.at]...)
		if decoded != nil {
			*decoded = append(*decoded, c.in[start:c.at]...)
		}
		if c.at == len(c.in) {
			return c.wrong("a string does not end")
		}
		if c.in[c.at] == '"' {
			c.at++
			c.out = append(c.out, '"')
			return nil
		}
		r, err := c.character()
		if err != nil {
			return err
		}
		c.out = appendCharacter(c.out, r)
		if decoded != nil {
			*decoded = utf8.AppendRune(*decoded, r)
		}
	}
}

// character reads a character that is not plain: an escape, or more than one byte.
func (c *canonicalizer) character() (rune, error) {
	b := c.in[c.at]
	if b < 0x20 {
		return 0, c.wrong("a bare control character")
	}
	if b != '\\' {
		r, n := utf8.DecodeRune(c.in[c.at:])
		if r == utf8.RuneError && n == 1 {
			return 0, c.wrong("invalid UTF-8")
		}
		c.at += n
		return r, nil
	}
	if c.at+1 == len(c.in) {
		return 0, c.wrong("a string does not end")
	}
	escape := c.in[c.at+1]
	if escape == 'u' {
		return c.unicodeEscape()
	}
	if i := strings.IndexByte(`"\/bfnrt`, escape); i >= 0 {
		c.at += 2
		return rune("\"\\/\b\f\n\r\t"[i]), nil
	}
	return 0, c.wrong("an unknown escape")
}

func (c *canonicalizer) unicodeEscape() (rune, error) {
	unit, ok := hexUnit(c.in[c.at:])
	if !ok {
		return 0, c.wrong("an incomplete escape")
	}
	if !utf16.IsSurrogate(unit) {
		c.at += 6
		return unit, nil
	}
	second, ok := hexUnit(c.in[min(len(c.in), c.at+6):])
	r := utf16.DecodeRune(unit, second)
	if !ok || r == utf8.RuneError {
		return 0, c.wrong("half of a surrogate pair")
	}
	c.at += 12
	return r, nil
}

// hexUnit reads \uXXXX.
func hexUnit(s []byte) (rune, bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	r := rune(0)
	for _, b := range s[2:6] {
		switch {
		case b >= '0' && b <= '9':
			r = r<<4 | rune(b-'0')
		case b >= 'a' && b <= 'f':
			r = r<<4 | rune(b-'a'+10)
		case b >= 'A' && b <= 'F':
			r = r<<4 | rune(b-'A'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

func appendCharacter(out []byte, r rune) []byte {
	if i := strings.IndexRune("\"\\\b\t\n\f\r", r); i >= 0 {
		return append(out, '\\', `"\btnfr`[i])
	}
	if r < 0x20 {
		return fmt.Appendf(out, `\u%04x`, r)
	}
	return utf8.AppendRune(out, r)
}

func (c *canonicalizer) digits() bool {
	start := c.at
	for c.at < len(c.in) && c.in[c.at] >= '0' && c.in[c.at] <= '9' {
		c.at++
	}
	return c.at > start
}

func (c *canonicalizer) accept(chars string) bool {
	if c.at < len(c.in) && strings.IndexByte(chars, c.in[c.at]) >= 0 {
		c.at++
		return true
	}
	return false
}

func (c *canonicalizer) number() error {
	start := c.at
	c.accept("-")
	if !c.accept("0") && !c.digits() {
		return c.wrong("a bad number")
	}
	if c.accept(".") && !c.digits() {
		return c.wrong("a bad number")
	}
	if c.accept("eE") {
		c.accept("+-")
		if !c.digits() {
			return c.wrong("a bad number")
		}
	}
	c.out = append(c.out, c.in[start:c.at]...)
	return nil
}
