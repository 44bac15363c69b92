package contract

import (
	"strconv"
	"unicode"
	"unicode/utf8"
)

// NamePattern is the rule for the names of namespaces, interfaces, APIs, listeners, subscriptions, tags and topics.
// ValidName checks it.
const NamePattern = `^[0-9a-zA-Z]([0-9a-zA-Z._-]{0,62}[0-9a-zA-Z])?$`

const (
	maxNameLength       = 64
	maxVersionLength    = 64
	maxIdentifierLength = 256
)

// ValidName tells whether s follows NamePattern.
func ValidName(s string) bool {
	if len(s) == 0 || len(s) > maxNameLength {
		return false
	}
	for i := range len(s) {
		inside := i > 0 && i < len(s)-1
		if !isAlphanumeric(s[i]) && !(inside && (s[i] == '.' || s[i] == '_' || s[i] == '-')) {
			return false
		}
	}
	return true
}

// ValidVersion tells whether s can be an interface's version: 1 to 64 printable characters.
func ValidVersion(s string) bool {
	if s == "" || !utf8.ValidString(s) || utf8.RuneCountInString(s) > maxVersionLength {
		return false
	}
	for _, r := range s {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

// validIdentifier tells whether s is a Solidity identifier: only such a name can stand in a signature.
func validIdentifier(s string) bool {
	if len(s) == 0 || len(s) > maxIdentifierLength || isDigit(s[0]) {
		return false
	}
	for i := range len(s) {
		if !isAlphanumeric(s[i]) && s[i] != '_' && s[i] != '$' {
			return false
		}
	}
	return true
}

// validParamName tells whether s can name a parameter: empty, or printable and not starting with a digit, which keeps
// the names apart from the positions that stand for unnamed parameters. It is laxer than validIdentifier because the
// name never reaches the chain.
func validParamName(s string) bool {
	if s == "" {
		return true
	}
	if len(s) > maxIdentifierLength || isDigit(s[0]) || !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

// InputName is the key of params[i] in an input object, in a decoded event and in a decoded custom error: its name, or
// its position ("0", "1") where it is unnamed or repeats an earlier name. Names never start with a digit, so the two
// cannot meet. Unnamed tuple components follow the same rule.
func InputName(params []Param, i int) string {
	name := params[i].Name
	if name == "" {
		return strconv.Itoa(i)
	}
	for _, earlier := range params[:i] {
		if earlier.Name == name {
			return strconv.Itoa(i)
		}
	}
	return name
}

// inputNames is InputName for all names at once, in linear time.
func inputNames(names []string) []string {
	keys := make([]string, len(names))
	seen := make(map[string]bool, len(names))
	for i, name := range names {
		if name == "" || seen[name] {
			keys[i] = strconv.Itoa(i)
			continue
		}
		seen[name] = true
		keys[i] = name
	}
	return keys
}

// OutputNames are the keys of a method's return values in the answer of a query. A single return value is "output",
// named or not. Among several, named ones keep their name; unnamed ones are "output", "output1", "output2" by position,
// with underscores appended where a named one has taken that name.
func OutputNames(returns []Param) []string {
	if len(returns) == 1 {
		return []string{"output"}
	}
	keys := make([]string, len(returns))
	taken := make(map[string]bool, len(returns))
	for i, p := range returns {
		if p.Name != "" && !taken[p.Name] {
			taken[p.Name] = true
			keys[i] = p.Name
		}
	}
	for i := range returns {
		if keys[i] != "" {
			continue
		}
		key := "output"
		if i > 0 {
			key += strconv.Itoa(i)
		}
		for taken[key] {
			key += "_"
		}
		taken[key] = true
		keys[i] = key
	}
	return keys
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isAlphanumeric(c byte) bool {
	return isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
