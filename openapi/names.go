package openapi

import (
	"strconv"
	"strings"
)

// names gives names that stay unique when a generator makes identifiers of them, whatever it does with case and punctuation.
type names struct {
	taken map[string]bool // folded
	next  map[string]int  // the number that the next name with this fold tries first
}

func newNames() *names { return &names{taken: map[string]bool{}, next: map[string]int{}} }

// generatedTypes are the names of types and functions that client and server generators write themselves.
var generatedTypes = []string{
	"Client", "ClientInterface", "ClientOption", "ClientWithResponses", "ClientWithResponsesInterface", "HttpRequestDoer", "RequestEditorFn",
	"NewClient", "NewClientWithResponses", "ServiceURL", "WithBaseURL", "WithHTTPClient", "WithRequestEditorFn", "ServerInterface", "StrictServerInterface",
	"BasicScopes", "BearerScopes", "Limit", "After", "Basic", "Bearer",
}

// derived are the identifiers that generators make of an operation's id beside the id itself, folded: oapi-codegen's are the first.
func derived(id string) []string {
	id = fold(id)
	out := []string{id, "new" + id + "request", "new" + id + "requestwithbody", "parse" + id + "response"}
	for _, suffix := range []string{
		"withbody", "withresponse", "withbodywithresponse", "params", "jsonbody", "jsonrequestbody", "response", "requestobject", "responseobject",
		"body", "reply", "200jsonresponse", "202jsonresponse",
	} {
		out = append(out, id+suffix)
	}
	return out
}

// operation names an operation: unique together with all that generators derive from it.
func (n *names) operation(wanted string) string { return n.pick(wanted, derived) }

// unique names a component.
func (n *names) unique(wanted string) string {
	return n.pick(wanted, func(name string) []string { return []string{fold(name)} })
}

// either names a component: as wanted if that is free, or else by the second name or what is near it.
func (n *names) either(wanted, second string) string {
	if !n.taken[fold(wanted)] {
		return n.unique(wanted)
	}
	return n.unique(second)
}

func (n *names) pick(wanted string, claims func(string) []string) string {
	safe := strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_' // a dollar sign is a letter in Solidity
	}, wanted)
	name, key := safe, fold(safe)
	for {
		claimed := claims(name)
		if n.free(claimed) {
			for _, c := range claimed {
				n.taken[c] = true
			}
			return name
		}
		// Counting on from where the last one stopped keeps the naming of ten thousand equal names linear.
		n.next[key] = max(n.next[key]+1, 2)
		name = safe + "_v" + strconv.Itoa(n.next[key])
	}
}

func (n *names) free(folded []string) bool {
	for _, f := range folded {
		if n.taken[f] {
			return false
		}
	}
	return true
}

// reserve takes a name that is given already.
func (n *names) reserve(name string) { n.taken[fold(name)] = true }

// follow takes all that other names have taken, and what generators call their own.
func (n *names) follow(other *names) {
	for f := range other.taken {
		n.taken[f] = true
	}
	for _, name := range generatedTypes {
		n.reserve(name)
	}
}

// fold is what remains of a name when case and punctuation do not count.
func fold(name string) string {
	folded := strings.ToLower(strings.ReplaceAll(name, "_", ""))
	if folded != "" && folded[0] >= '0' && folded[0] <= '9' {
		return "n" + folded // an identifier cannot begin with a digit, and this is what oapi-codegen makes of it
	}
	return folded
}

// goNames are the names that the fields of a Go struct get where oapi-codegen, left alone, would give two fields the same name or one a
// poor one; empty where it needs no help. It reads them from the extension x-go-name.
func goNames(properties []string) []string {
	hints := make([]string, len(properties))
	used := make(map[string]bool, len(properties))
	easy := make([]bool, len(properties))
	for i, name := range properties {
		if f := fold(name); isPlain(name) && !used[f] {
			easy[i], used[f] = true, true
		}
	}
	for i, name := range properties {
		if easy[i] {
			continue
		}
		base := camel(name)
		if base == "" {
			base = strconv.Itoa(i)
		}
		if base[0] >= '0' && base[0] <= '9' {
			base = "Arg" + base
		}
		hint := base
		for n := 2; used[fold(hint)]; n++ {
			hint = base + "V" + strconv.Itoa(n)
		}
		hints[i], used[fold(hint)] = hint, true
	}
	return hints
}

// isPlain tells that a name gives the same Go name in every style, up to case.
func isPlain(name string) bool {
	if name == "" || !isLetter(rune(name[0])) {
		return false
	}
	return strings.IndexFunc(name, func(r rune) bool { return r != '_' && !isLetter(r) && (r < '0' || r > '9') }) < 0
}

func isLetter(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }

// camel writes a name as Go writes exported ones, without what is no letter or digit of ASCII.
func camel(name string) string {
	var out strings.Builder
	upper := true
	for _, r := range name {
		switch {
		case isLetter(r):
			if upper && r >= 'a' {
				r -= 'a' - 'A'
			}
			out.WriteRune(r)
			upper = false
		case r >= '0' && r <= '9':
			out.WriteRune(r)
			upper = true
		default:
			upper = true
		}
	}
	return out.String()
}
