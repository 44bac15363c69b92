package contract

import (
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"

	pactwire "github.com/pactwire/pactwire"
)

// Method finds a method by its pathname or its full signature, such as transfer(address,uint256). The error of a miss
// names what comes near.
func (c *Compiled) Method(pathOrSignature string) (*CompiledMethod, error) {
	if m := c.method[pathOrSignature]; m != nil {
		return m, nil
	}
	if m := c.method[withoutSpaces(pathOrSignature)]; m != nil {
		return m, nil
	}
	names := make([]string, len(c.methods))
	for i, m := range c.methods {
		names[i] = m.Method.Pathname
	}
	return nil, notFound("method", pathOrSignature, names)
}

// Event finds an event by its pathname or its full signature.
func (c *Compiled) Event(pathOrSignature string) (*CompiledEvent, error) {
	if e := c.event[pathOrSignature]; e != nil {
		return e, nil
	}
	if e := c.event[withoutSpaces(pathOrSignature)]; e != nil {
		return e, nil
	}
	names := make([]string, len(c.events))
	for i, e := range c.events {
		names[i] = e.Event.Pathname
	}
	return nil, notFound("event", pathOrSignature, names)
}

// Methods are all methods in order. The slice must not be changed.
func (c *Compiled) Methods() []*CompiledMethod { return c.methods }

// Events are all events in order. The slice must not be changed.
func (c *Compiled) Events() []*CompiledEvent { return c.events }

// withoutSpaces lets "transfer(address, uint256)" find the signature that people write so.
func withoutSpaces(s string) string { return strings.ReplaceAll(s, " ", "") }

// notFound makes the error of a miss, with a hint.
func notFound(what, wanted string, names []string) error {
	near := nearNames(wanted, names)
	switch {
	case len(names) == 0:
		return pactwire.NotFound(what, "there is no %s %s: the interface has none", what, quoteShort(wanted))
	case len(near) == 0:
		return pactwire.NotFound(what, "there is no %s %s in the interface", what, quoteShort(wanted))
	}
	return pactwire.NotFound(what, "there is no %s %s in the interface; did you mean %s?", what, quoteShort(wanted), strings.Join(near, ", "))
}

const (
	maxHints        = 5
	maxHintDistance = 3
	maxHintLength   = 64   // names beyond it are not compared
	maxHintNames    = 1000 // bounds the work that a wrong name causes
)

// nearNames picks the names that the caller may have meant, the nearest first.
func nearNames(wanted string, names []string) []string {
	if i := strings.IndexByte(wanted, '('); i >= 0 {
		wanted = wanted[:i]
	}
	if wanted == "" || len(wanted) > maxHintLength {
		return nil
	}
	type hint struct {
		name     string
		distance int
	}
	wanted = strings.ToLower(wanted)
	var hints []hint
	for _, name := range names[:min(len(names), maxHintNames)] {
		if len(name) > maxHintLength {
			continue
		}
		lower := strings.ToLower(name)
		distance := levenshtein.ComputeDistance(wanted, lower)
		if strings.HasPrefix(lower, wanted) || strings.HasPrefix(wanted, lower) {
			distance = min(distance, 1)
		}
		if distance <= maxHintDistance && distance < len(name) {
			hints = append(hints, hint{name, distance})
		}
	}
	slices.SortStableFunc(hints, func(a, b hint) int { return a.distance - b.distance })
	near := make([]string, 0, maxHints)
	for _, h := range hints[:min(len(hints), maxHints)] {
		near = append(near, h.name)
	}
	return near
}
