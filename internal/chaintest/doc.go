// Package chaintest gives a test an EVM chain of its own: the dev chain, in memory, with its JSON-RPC endpoint on a real
// loopback port, ten funded accounts, and reorganisations on demand. Starting one takes some 50 ms; several may run at once.
//
//	chain := chaintest.New(t)
//	storage := chain.Deploy(t, contracts.SimpleStorage())
//	receipt := chain.Transact(t, 1, storage, contracts.SimpleStorage(), "set", big.NewInt(42))
//	chain.Reorg(t, 3)
//
// Helpers use account 9 where no account is named, so that a test's own accounts keep predictable nonces.
package chaintest
