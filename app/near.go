package app

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// unknown is the error about a name that is none of the known ones: it names those that were probably meant.
func unknown(what, name string, known []string) error {
	close := near(name, known)
	if len(close) == 0 {
		return fmt.Errorf("%s is not known; there are %s", what, strings.Join(known, ", "))
	}
	return fmt.Errorf("%s is not known; did you mean %s?", what, strings.Join(close, " or "))
}

// near returns the known names that are a few typing mistakes away, nearest first.
func near(name string, known []string) []string {
	const most = 3
	type candidate struct {
		name     string
		distance int
	}
	var found []candidate
	name = strings.ToLower(strings.ReplaceAll(name, "_", "-"))
	for _, k := range known {
		plain := strings.ToLower(strings.ReplaceAll(k, "_", "-"))
		d := levenshtein.ComputeDistance(name, plain)
		if strings.Contains(plain, name) && len(name) > 2 {
			d = 1
		}
		if d <= max(1, len(name)/3) {
			found = append(found, candidate{k, d})
		}
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return a.distance - b.distance })
	var names []string
	for _, f := range found[:min(most, len(found))] {
		names = append(names, f.name)
	}
	return names
}
