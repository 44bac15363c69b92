// Package store keeps everything that Pactwire must not forget in PostgreSQL. Each file holds one table's Go type and the SQL that fills it.
//
// What it guarantees:
//
//   - Exported methods own their transaction: when one returns nil, its work is committed; when it returns an error, nothing of it is.
//   - Sequence order is commit order: appendHistory takes the namespace's row lock last, numbers and inserts in one go, and the lock is
//     held until the commit. A reader that has seen sequence n will never meet an event below n that it has not seen. There are no gaps.
//   - A write made under a lease carries the lease's epoch and returns ErrFenced once a newer owner has written.
//   - A notification only wakes. It may be lost or doubled; whoever waits also polls.
//
// What it does not: it does not decide. Which block to read, which nonce to give and which event to deliver is decided by its callers.
package store
