// Package pactwire is one binary in front of an EVM blockchain: it turns contract ABIs into REST APIs and delivers the contracts'
// events to applications, in order, none lost, none doubled. This package holds what all others speak: the errors. The map of the code, the two data
// paths and the invariants are in docs/architecture.md; in short:
//
//	cmd/pactwire    the verbs
//	app             configuration, wiring, life cycle
//	handlers        REST, generated from openapi/openapi.yaml into gen
//	contract        ABI to interface, JSON to ABI values and back; pure
//	chain           one node: calls, the submitter (outbox, nonces, receipts), the reader (logs, reorganisations)
//	multiparty      broadcasts: messages, batches, pins, members
//	delivery, ws    the history, delivered through a window to one consumer at a time
//	store           PostgreSQL: a Go type and its SQL a file; migrations
//	devnet          the dev chain and the private PostgreSQL of `pactwire dev`
package pactwire
