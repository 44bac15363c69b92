package auth

import (
	"fmt"
	"slices"
	"strings"
)

// Role is what someone may do. Each role includes the ones below it.
type Role string

// The roles.
const (
	RoleRead   Role = "read"   // everything that changes nothing: GET, queries, receiving events
	RoleInvoke Role = "invoke" // also send transactions and messages
	RoleAdmin  Role = "admin"  // also define and delete interfaces, APIs, listeners, subscriptions
)

var ranks = map[Role]int{RoleRead: 1, RoleInvoke: 2, RoleAdmin: 3}

// AllNamespaces in a principal's list stands for every namespace.
const AllNamespaces = "*"

// Principal is who sends a request.
type Principal struct {
	Name       string
	Namespaces []string // the names, or AllNamespaces
	Role       Role
}

// Sees tells whether the principal may know of the namespace at all.
func (p Principal) Sees(namespace string) bool {
	return slices.Contains(p.Namespaces, namespace) || slices.Contains(p.Namespaces, AllNamespaces)
}

// May tells whether the principal may do in the namespace what the role stands for. What belongs to no namespace has the empty name, which everyone sees.
func (p Principal) May(role Role, namespace string) bool {
	return (namespace == "" || p.Sees(namespace)) && ranks[role] > 0 && ranks[p.Role] >= ranks[role]
}

// parseLine reads name:secret[:role[:namespaces]].
func parseLine(line string) (p Principal, secret string, err error) {
	parts := strings.Split(line, ":")
	if len(parts) < 2 || len(parts) > 4 || parts[0] == "" {
		return p, "", fmt.Errorf("must have the form name:secret[:role[:namespace,namespace]]")
	}
	p = Principal{Name: parts[0], Role: RoleRead, Namespaces: []string{AllNamespaces}}
	if len(parts) > 2 && parts[2] != "" {
		p.Role = Role(parts[2])
		if ranks[p.Role] == 0 {
			return p, "", fmt.Errorf("the role %q is none of read, invoke, admin", parts[2])
		}
	}
	if len(parts) > 3 {
		p.Namespaces = strings.Split(parts[3], ",")
		if slices.Contains(p.Namespaces, "") {
			return p, "", fmt.Errorf("a namespace is empty; write %s for all of them", AllNamespaces)
		}
	}
	return p, parts[1], nil
}
