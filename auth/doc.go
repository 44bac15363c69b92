// Package auth finds out who sends a request, and tells what that one may do.
//
// Users come from a file of bcrypt hashes, as `htpasswd -B` writes it, machines from a file of token digests. Each line may end with a role and the
// namespaces it is good for:
//
//	users:  name:$2y$...[:role[:namespace,namespace]]
//	tokens: name:SHA-256 of the token in hex[:role[:namespace,namespace]]
//
// What it guarantees: no clear password or token is kept, on disk or in memory; a name that does not exist takes as long to refuse as a wrong password; the
// work that wrong passwords cause is bounded. A role includes those below it: admin, invoke, read; without one a line means read in all namespaces.
//
// What it does not: it does not decide which role a request needs, and it reads its files once, at the start.
package auth
