package store

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	pactwire "github.com/pactwire/pactwire"
)

// Page says which part of a collection is asked for.
type Page struct {
	Limit      int // 1 to 250; 25 when zero
	Skip       int // 0 to 1000
	After      string
	Sort       string // a sortable field; the collection's own order, newest first, when empty
	Descending *bool
	Count      bool              // count the whole collection too
	Filters    map[string]string // field -> value, compared for equality
}

// PageInfo goes with a page that was read.
type PageInfo struct {
	Next  string // the After of the next page; empty on the last one
	Total int64  // with Page.Count
}

// column is how a field of the API stands in SQL.
type column struct {
	sql  string // expression
	cast string // SQL type that a value is cast to
}

// listing describes a collection. Its rows are unique by key, and key grows with time.
type listing struct {
	resource string // for errors
	columns  string
	from     string
	where    string // fixed condition on $1, the namespace
	key      column
	fields   map[string]column // filterable and sortable; none may be null
	match    map[string]string // filterable only: a condition with %s in the place of the value
}

// cursor is what After hides: the sort value and the key of the last row of the page before.
type cursor struct {
	Sort  string `json:"s"`
	Value string `json:"v"`
	Key   string `json:"k"`
}

// list reads one page.
func list[T any](ctx context.Context, db *DB, l listing, namespace string, p Page) ([]T, PageInfo, error) {
	by, descending, err := l.order(p)
	if err != nil {
		return nil, PageInfo{}, err
	}
	where, args, err := l.conditions(namespace, p)
	if err != nil {
		return nil, PageInfo{}, err
	}
	var info PageInfo
	if p.Count {
		if err := db.db.GetContext(ctx, &info.Total, `SELECT count(*) FROM `+l.from+` WHERE `+where, args...); err != nil {
			return nil, PageInfo{}, l.badValue(err)
		}
	}
	direction, beyond := "ASC", ">"
	if descending {
		direction, beyond = "DESC", "<"
	}
	if p.After != "" {
		c, err := parseCursor(p.After, p.Sort)
		if err != nil {
			return nil, PageInfo{}, err
		}
		args = append(args, c.Value, c.Key)
		where += fmt.Sprintf(` AND (%s, %s) %s (CAST($%d AS %s), CAST($%d AS %s))`,
			by.sql, l.key.sql, beyond, len(args)-1, by.cast, len(args), l.key.cast)
	}
	limit := p.Limit
	if limit <= 0 {
		limit = 25
	}
	query := fmt.Sprintf(`SELECT %s, CAST(%s AS text) AS page_sort, CAST(%s AS text) AS page_key FROM %s WHERE %s ORDER BY %s %s, %s %s LIMIT %d OFFSET %d`,
		l.columns, by.sql, l.key.sql, l.from, where, by.sql, direction, l.key.sql, direction, limit+1, p.Skip)
	rows, err := db.db.Unsafe().QueryxContext(ctx, query, args...)
	if err != nil {
		return nil, PageInfo{}, l.badValue(err)
	}
	defer rows.Close()
	items := make([]T, 0, limit)
	var last cursor
	for rows.Next() {
		if len(items) == limit {
			info.Next = last.String()
			break
		}
		var item T
		if err := rows.StructScan(&item); err != nil {
			return nil, PageInfo{}, wrap(err, "read a "+l.resource)
		}
		all, err := rows.SliceScan()
		if err != nil {
			return nil, PageInfo{}, wrap(err, "read a "+l.resource)
		}
		last = cursor{Sort: p.Sort, Value: text(all[len(all)-2]), Key: text(all[len(all)-1])}
		items = append(items, item)
	}
	return items, info, l.badValue(rows.Err())
}

func text(v any) string {
	if b, ok := v.([]byte); ok {
		return string(b)
	}
	return fmt.Sprint(v)
}

func (l listing) order(p Page) (by column, descending bool, err error) {
	if p.Sort == "" {
		descending = true // newest first
		by = l.key
	} else {
		var ok bool
		if by, ok = l.fields[p.Sort]; !ok {
			return column{}, false, pactwire.Invalid("sort", "must be one of %s", names(l.fields))
		}
	}
	if p.Descending != nil {
		descending = *p.Descending
	}
	return by, descending, nil
}

func (l listing) conditions(namespace string, p Page) (string, []any, error) {
	where, args := []string{l.where}, []any{namespace}
	for _, field := range slices.Sorted(maps.Keys(p.Filters)) {
		if strings.ContainsRune(p.Filters[field], 0) {
			return "", nil, pactwire.Invalid(field, "must not hold a NUL character")
		}
		args = append(args, p.Filters[field])
		place := fmt.Sprintf("$%d", len(args))
		switch c, ok := l.fields[field]; {
		case ok:
			where = append(where, fmt.Sprintf(`%s = CAST(%s AS %s)`, c.sql, place, c.cast))
		case l.match[field] != "":
			where = append(where, fmt.Sprintf(l.match[field], place))
		default:
			return "", nil, pactwire.Invalid(field, "is not a field to filter a list of %s records by; there are %s", l.resource, names(l.fields))
		}
	}
	return strings.Join(where, " AND "), args, nil
}

// badValue tells a filter or cursor value that is not of its field's type from a failure of ours.
func (l listing) badValue(err error) error {
	if isDataError(err) {
		return pactwire.Invalid("", "a filter or the cursor has a value that is not of its field's type")
	}
	return wrap(err, "list the "+l.resource+" records")
}

func names(fields map[string]column) string {
	return strings.Join(slices.Sorted(maps.Keys(fields)), ", ")
}

// String encodes the cursor.
func (c cursor) String() string {
	raw, err := json.Marshal(c)
	if err != nil {
		return "" // three strings always encode
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

func parseCursor(s, by string) (cursor, error) {
	var c cursor
	raw, err := base64.RawURLEncoding.DecodeString(s)
	if err == nil {
		err = json.Unmarshal(raw, &c)
	}
	if err != nil || c.Sort != by || strings.ContainsRune(c.Value+c.Key, 0) {
		return c, pactwire.Invalid("after", "must be the X-Next-After of a page of the same list with the same sort")
	}
	return c, nil
}
