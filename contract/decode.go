package contract

import (
	"encoding/binary"
	"errors"
	"fmt"
)

const (
	minOutputLimit = 4 << 20 // bytes of JSON that any data may become
	outputPerByte  = 8       // and that each byte of data may become beyond that
	maxInlineWord  = 1 << 31 // larger offsets and lengths cannot be right
)

var (
	errDataShort   = errors.New("the data ends too early")
	errDataLength  = errors.New("an offset or length points beyond the data")
	errDataPadding = errors.New("a value has bits set that its type does not have")
	errDataLarge   = errors.New("the data stands for too much: it refers to the same bytes again and again")
)

// decoder writes JSON straight from ABI bytes. Every step appends at least one byte, so the bound on the output bounds
// the work as well, whatever offsets the data holds.
type decoder struct {
	data  []byte
	out   []byte
	limit int
}

func newDecoder(data []byte) *decoder {
	return &decoder{
		data: data, out: make([]byte, 0, 64+3*min(len(data), minOutputLimit)), limit: max(minOutputLimit, outputPerByte*len(data)),
	}
}

// word returns the word at a position.
func (d *decoder) word(at int) ([]byte, error) {
	if at > len(d.data)-wordSize {
		return nil, errDataShort
	}
	return d.data[at : at+wordSize], nil
}

// size reads an offset or a length.
func (d *decoder) size(at int) (int, error) {
	word, err := d.word(at)
	if err != nil {
		return 0, err
	}
	n := binary.BigEndian.Uint64(word[24:])
	if n > maxInlineWord || binary.BigEndian.Uint64(word[16:]) != 0 || binary.BigEndian.Uint64(word[8:]) != 0 || binary.BigEndian.Uint64(word) != 0 {
		return 0, errDataLength
	}
	return int(n), nil
}

// place decodes a value whose head is at a position within the tuple or array that begins at base.
func (d *decoder) place(t *abiType, base, at int) error {
	if !t.dynamic {
		return d.at(t, at)
	}
	offset, err := d.size(at)
	if err != nil {
		return err
	}
	if offset > len(d.data)-base {
		return errDataLength
	}
	return d.at(t, base+offset)
}

// at decodes a value that begins at a position.
func (d *decoder) at(t *abiType, at int) error {
	if len(d.out) > d.limit {
		return errDataLarge
	}
	switch t.kind {
	case kindTuple:
		return d.tuple(t, at)
	case kindArray:
		return d.elements(t.elem, at, t.width)
	case kindSlice:
		length, err := d.size(at)
		if err != nil {
			return err
		}
		base := at + wordSize
		if head := t.elem.head(); head > 0 && length > (len(d.data)-base)/head {
			return errDataLength
		}
		return d.elements(t.elem, base, length)
	case kindBytes, kindString:
		return d.content(t, at)
	}
	word, err := d.word(at)
	if err != nil {
		return err
	}
	return d.scalar(t, word)
}

func (d *decoder) tuple(t *abiType, base int) error {
	d.out = append(d.out, '{')
	at := base
	for i := range t.fields {
		f := &t.fields[i]
		if i > 0 {
			d.out = append(d.out, ',')
		}
		d.out = append(d.out, f.prefix...)
		if err := d.place(f.typ, base, at); err != nil {
			return err
		}
		at += f.typ.head()
	}
	d.out = append(d.out, '}')
	return nil
}

func (d *decoder) elements(elem *abiType, base, length int) error {
	d.out = append(d.out, '[')
	at := base
	for i := range length {
		if i > 0 {
			d.out = append(d.out, ',')
		}
		if err := d.place(elem, base, at); err != nil {
			return err
		}
		at += elem.head()
	}
	d.out = append(d.out, ']')
	return nil
}

// content decodes bytes and strings.
func (d *decoder) content(t *abiType, at int) error {
	length, err := d.size(at)
	if err != nil {
		return err
	}
	at += wordSize
	if length > len(d.data)-at {
		return errDataLength
	}
	if 2*length > d.limit-len(d.out) {
		return errDataLarge
	}
	content := d.data[at : at+length]
	if t.kind == kindBytes {
		d.out = appendQuotedHex(d.out, content)
	} else {
		d.out = appendQuoted(d.out, content)
	}
	return nil
}

// scalar decodes a type of one word.
func (d *decoder) scalar(t *abiType, word []byte) error {
	switch t.kind {
	case kindUint:
		n := loadNumber(word)
		if n.bitLen() > t.width {
			return fmt.Errorf("%w (%s)", errDataPadding, t.name)
		}
		d.out = append(d.out, '"')
		d.out = append(n.appendDecimal(d.out), '"')
	case kindInt:
		n := loadNumber(word)
		neg := word[0]&0x80 != 0
		if neg {
			n.negate()
		}
		if !n.fits(neg, true, t.width) {
			return fmt.Errorf("%w (%s)", errDataPadding, t.name)
		}
		d.out = append(d.out, '"')
		if neg {
			d.out = append(d.out, '-')
		}
		d.out = append(n.appendDecimal(d.out), '"')
	case kindBool:
		n := loadNumber(word)
		switch {
		case n == number{}:
			d.out = append(d.out, "false"...)
		case n == number{1}:
			d.out = append(d.out, "true"...)
		default:
			return fmt.Errorf("%w (%s)", errDataPadding, t.name)
		}
	case kindAddress:
		d.out = appendQuotedHex(d.out, word[wordSize-20:])
	default: // fixed bytes; what follows them within the word is passed over, but a function is strict as in go-ethereum
		if t.name == functionName && [wordSize - functionSize]byte(word[functionSize:]) != [wordSize - functionSize]byte{} {
			return fmt.Errorf("%w (%s)", errDataPadding, t.name)
		}
		d.out = appendQuotedHex(d.out, word[:t.width])
	}
	return nil
}
