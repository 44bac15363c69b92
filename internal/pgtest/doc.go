// Package pgtest gives every test a PostgreSQL database of its own, with the newest schema.
//
//	url := pgtest.New(t)
//
// The database is cloned from a migrated template (20 to 50 ms) and dropped when the test ends. The server comes from
// PACTWIRE_TEST_DATABASE_URL if set; `pgserve COMMAND...` sets it for all test binaries of one run. Otherwise the test binary
// starts a private server, which ends with it. Private servers live in a few numbered folders under the system's temporary
// folder that are used again and again, so that nothing piles up and only the very first start has to initialise a cluster.
//
// It guarantees isolation between tests, also between those of concurrent test binaries. It does not guarantee durability:
// private servers run without fsync.
package pgtest
