// Package devnet is the embedded default of `pactwire dev`: a private PostgreSQL server and an in-process EVM chain, both
// kept under one data folder, so that nothing has to be installed, configured or running besides.
//
//	.pactwire/
//	  postgres/    lock, data/ (the cluster), s/ (its socket), postgres.log
//	  chain/       the chain's database
//
// What it guarantees: what was answered is still there after a kill -9 of the process at any time, for the database
// (fsync stays on) as for the chain (the key-value store is synced at each new head). Nothing listens beyond loopback; the
// database listens on a socket inside a folder that only its own user and root can enter. One process at a time uses a
// folder: a second one is refused. Children never outlive the process, however it ends.
//
// What it does not: it is no production set-up. The chain's keys are public knowledge, its blocks are produced by one party
// on demand, and the database trusts whoever can reach its socket.
package devnet
