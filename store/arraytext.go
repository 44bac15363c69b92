package store

import (
	"database/sql/driver"
	"encoding/hex"
	"strconv"

	"github.com/google/uuid"
)

// arrayText is an array as PostgreSQL reads it from text, made element by element and without its closing brace. The driver's own arrays copy each element a few
// times on the way, which is most of what recording events costs this process.
type arrayText []byte

// Value implements driver.Valuer. The driver sends bytes as they are where the statement's argument is no bytea.
func (a arrayText) Value() (driver.Value, error) {
	if len(a) == 0 {
		return []byte("{}"), nil
	}
	return append([]byte(a), '}'), nil
}

// next begins an element.
func (a *arrayText) next() {
	if len(*a) == 0 {
		*a = append(*a, '{')
	} else {
		*a = append(*a, ',')
	}
}

func (a *arrayText) number(n int64) {
	a.next()
	*a = strconv.AppendInt(*a, n, 10)
}

func (a *arrayText) uuid(id uuid.UUID) {
	a.next()
	*a = append(*a, id.String()...)
}

func (a *arrayText) bytes(value []byte) {
	a.next()
	*a = append(*a, `"\\x`...)
	*a = hex.AppendEncode(*a, value)
	*a = append(*a, '"')
}

func (a *arrayText) text(value string) {
	a.next()
	b, from := append(*a, '"'), 0
	for i := range len(value) {
		if value[i] == '"' || value[i] == '\\' {
			b = append(append(b, value[from:i]...), '\\')
			from = i
		}
	}
	*a = append(append(b, value[from:]...), '"')
}
