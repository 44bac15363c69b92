package chaintest

import "go.uber.org/goleak"

// IgnoreLeaks lists the goroutines that go-ethereum leaves behind when a node stops, for goleak.VerifyTestMain or pgtest.Main
// in packages whose tests use a chain:
//
//	func TestMain(m *testing.M) { pgtest.Main(m, chaintest.IgnoreLeaks()...) }
func IgnoreLeaks() []goleak.Option {
	return []goleak.Option{
		// One pool per process, never stopped.
		goleak.IgnoreTopFunction("github.com/ethereum/go-ethereum/core.(*txSenderCacher).cache"),
		// Ends up to 30 s after its database was closed.
		goleak.IgnoreTopFunction("github.com/syndtr/goleveldb/leveldb.(*DB).mpoolDrain"),
		// A head's subscriber that leaves while the node stops may wait for the event system that has ended.
		goleak.IgnoreAnyFunction("github.com/ethereum/go-ethereum/eth/filters.(*Subscription).Unsubscribe.1"),
		// The check of a WebSocket's Origin stops half way through a list.
		goleak.IgnoreAnyFunction("github.com/deckarep/golang-set/v2.(*threadSafeSet[...]).Iterator.func1"),
		// A subscription of the node's own that ends after the node's event loop has: it waits for ever to be taken out of it.
		goleak.IgnoreAnyFunction("github.com/ethereum/go-ethereum/eth/filters.(*FilterAPI).NewHeads.func1"),
		goleak.IgnoreAnyFunction("github.com/ethereum/go-ethereum/eth/filters.(*FilterAPI).Logs.func1"),
	}
}
