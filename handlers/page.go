package handlers

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/gen"
	"github.com/pactwire/pactwire/store"
)

// paging are the query parameters that are no filters.
var paging = map[string]bool{
	"limit": true, "skip": true, "after": true, "sort": true, "descending": true, "count": true, "fetchstatus": true, "fetchreferences": true,
	"fetchdata": true, "fetchchildren": true, "startsequence": true, "endsequence": true,
}

type listQueryKey struct{}

// withListQuery notes which page of a collection a request asks for. A parameter that the collection does not know is refused: a filter that is
// misspelt would otherwise find everything.
func withListQuery(ctx context.Context, query url.Values, known map[string]bool) (context.Context, error) {
	p := store.Page{Filters: map[string]string{}}
	for name, values := range query {
		if !known[name] {
			return nil, pactwire.Invalid(name, "is not a parameter of this collection; there are %s", strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
		if len(values) != 1 {
			return nil, pactwire.Invalid(name, "must be given once")
		}
		if !paging[name] {
			p.Filters[name] = values[0]
		}
	}
	p.Limit, _ = strconv.Atoi(query.Get("limit")) // validated already; 0 means the default
	p.Skip, _ = strconv.Atoi(query.Get("skip"))
	p.After, p.Sort = query.Get("after"), query.Get("sort")
	if d, err := strconv.ParseBool(query.Get("descending")); err == nil {
		p.Descending = &d
	}
	p.Count, _ = strconv.ParseBool(query.Get("count"))
	return context.WithValue(ctx, listQueryKey{}, p), nil
}

// page is what withListQuery has noted.
func page(ctx context.Context) store.Page {
	p, _ := ctx.Value(listQueryKey{}).(store.Page)
	return p
}

// counted makes the answer to count=true.
func counted[T any](items []T, total int64) gen.Page {
	all := make([]any, len(items))
	for i := range items {
		all[i] = items[i]
	}
	return gen.Page{Count: len(items), Total: total, Items: all}
}

// convertAll converts a page of records.
func convertAll[A, B any](in []A, convert func(A) (B, error)) ([]B, error) {
	out := make([]B, 0, len(in))
	for _, item := range in {
		converted, err := convert(item)
		if err != nil {
			return nil, err
		}
		out = append(out, converted)
	}
	return out, nil
}
