package devnet

import (
	"fmt"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/eth/ethconfig"
	"github.com/ethereum/go-ethereum/node"
	"github.com/ethereum/go-ethereum/p2p"
	"github.com/ethereum/go-ethereum/params"
)

// ChainID is the dev chain's id, the one that development tools expect.
const ChainID = 31337

const (
	blockGasLimit = 60_000_000
	leastTip      = 1 // wei: all that the pool takes is mined, since what is not would wait for ever
)

// genesis funds the development accounts on a chain with today's mainnet rules. It must never change for an existing
// folder, so it depends on nothing but this code.
func genesis() (*core.Genesis, error) {
	config := *params.AllDevChainProtocolChanges
	config.ChainID = big.NewInt(ChainID)
	// Forks that mainnet does not have yet; with them a first storage write costs 133,000 gas.
	config.AmsterdamTime, config.BogotaTime = nil, nil

	alloc := core.SystemContractAllocs() // what the enabled forks call into
	balance := new(big.Int).Mul(big.NewInt(10_000), big.NewInt(params.Ether))
	accounts, err := Accounts()
	if err != nil {
		return nil, err
	}
	for _, account := range accounts {
		alloc[account.Address] = types.Account{Balance: balance}
	}
	return &core.Genesis{
		Config:     &config,
		GasLimit:   blockGasLimit,
		BaseFee:    big.NewInt(7), // the standard rules never let it fall below this again
		Difficulty: big.NewInt(0),
		Alloc:      alloc,
	}, nil
}

// ethConfig is a node that keeps everything and refuses little.
func ethConfig(persistent bool) (*ethconfig.Config, error) {
	cfg := ethconfig.Defaults
	var err error
	if cfg.Genesis, err = genesis(); err != nil {
		return nil, fmt.Errorf("make the genesis block: %w", err)
	}
	cfg.NetworkId = ChainID
	cfg.SyncMode = ethconfig.FullSync
	// Each block's state goes to the database with the block, so that a kill at any time leaves nothing to repair.
	cfg.StateScheme = "hash"
	cfg.NoPruning = true
	cfg.NoPrefetch = true // blocks are small, and what would be fetched ahead lies in memory
	cfg.SnapshotCache = 0
	cfg.TransactionHistory = 0 // receipts of every transaction, for ever
	cfg.LogNoHistory = true    // the index lags behind the head; the blocks' own filters are exact
	cfg.LogQueryLimit = 10_000
	cfg.DatabaseCache, cfg.DatabaseHandles = 64, 256
	cfg.TrieCleanCache, cfg.TrieDirtyCache = 32, 32
	cfg.RPCTxFeeCap = 0
	cfg.RPCGasCap = blockGasLimit
	cfg.Miner.GasCeil = blockGasLimit
	cfg.Miner.GasPrice = big.NewInt(leastTip)
	// One key may have thousands of transactions under way.
	cfg.TxPool.AccountSlots, cfg.TxPool.AccountQueue = 65_536, 65_536
	cfg.TxPool.GlobalSlots, cfg.TxPool.GlobalQueue = 262_144, 262_144
	// The journal holds what was accepted and not yet mined; chains in memory lose everything anyway.
	cfg.TxPool.NoLocals = !persistent
	cfg.TxPool.Journal = journalName
	cfg.TxPool.Rejournal = time.Minute
	return &cfg, nil
}

// The transaction journal's file, inside the node's instance folder.
const (
	instanceName = "evm"
	journalName  = "transactions.rlp"
)

func nodeConfig(dir, host string, port int) *node.Config {
	modules := []string{"eth", "net", "web3", "txpool", "debug"}
	return &node.Config{
		Name:    instanceName,
		Version: "pactwire-dev",
		DataDir: dir,
		P2P:     p2p.Config{NoDiscovery: true, NoDial: true},

		HTTPHost:    host,
		HTTPPort:    port,
		HTTPModules: modules,
		// A page from elsewhere must not reach a chain on this machine: neither by its origin nor by a name that it owns.
		HTTPCors: []string{
			"http://localhost", "http://localhost:*", "http://127.0.0.1", "http://127.0.0.1:*", "http://[::1]:*",
			"https://localhost", "https://localhost:*", "https://127.0.0.1:*",
		},
		HTTPVirtualHosts: []string{"localhost"},
		HTTPTimeouts:     node.DefaultConfig.HTTPTimeouts,
		WSHost:           host,
		WSPort:           port,
		WSModules:        modules,
		WSOrigins:        []string{"localhost", "127.0.0.1", "[::1]"},

		AllowUnprotectedTxs:  true, // deterministic deployers use them
		BatchRequestLimit:    10_000,
		BatchResponseMaxSize: 100_000_000,
		HTTPBodyLimit:        32 << 20,
	}
}
