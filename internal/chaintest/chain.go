package chaintest

import (
	"context"
	"errors"
	"log/slog"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/pactwire/pactwire/contracts"
	"github.com/pactwire/pactwire/devnet"
)

// helperAccount is the account of Deploy.
const helperAccount = 9

const waitLimit = 20 * time.Second

// Chain is a test's own chain. It stops when the test ends.
type Chain struct {
	Accounts []devnet.Account

	chain  *devnet.Chain
	client *ethclient.Client
	manual bool
}

// Option changes how New starts the chain.
type Option func(*devnet.ChainConfig)

// Manual leaves the making of blocks to Mine.
func Manual() Option { return func(cfg *devnet.ChainConfig) { cfg.Manual = true } }

// Listen fixes the endpoint's address, for tests of a node that comes back.
func Listen(address string) Option { return func(cfg *devnet.ChainConfig) { cfg.Listen = address } }

// InFolder keeps the chain in a folder, for tests of a node that comes back.
func InFolder(dir string) Option { return func(cfg *devnet.ChainConfig) { cfg.Dir = dir } }

// New starts a chain. It mines on demand unless Manual is given; block 1 is there.
func New(t testing.TB, options ...Option) *Chain {
	t.Helper()
	cfg := devnet.ChainConfig{Listen: "127.0.0.1:0"}
	for _, option := range options {
		option(&cfg)
	}
	accounts, err := devnet.Accounts()
	if err != nil {
		t.Fatal(err)
	}
	chain, err := devnet.StartChain(context.Background(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatalf("start a chain for the test: %v", err)
	}
	c := &Chain{Accounts: accounts, chain: chain, client: ethclient.NewClient(chain.Attach()), manual: cfg.Manual}
	t.Cleanup(func() { c.Stop(t) })
	return c
}

// Stop ends the chain before the test does: a node that goes away.
func (c *Chain) Stop(t testing.TB) {
	t.Helper()
	c.client.Close()
	if err := c.chain.Stop(); err != nil {
		t.Errorf("stop the test's chain: %v", err)
	}
}

// HTTPURL is the chain's JSON-RPC address over HTTP.
func (c *Chain) HTTPURL() string { return c.chain.HTTPURL() }

// WSURL is the chain's JSON-RPC address over WebSocket.
func (c *Chain) WSURL() string { return c.chain.WSURL() }

// Attach connects to the chain within the process.
func (c *Chain) Attach() *rpc.Client { return c.chain.Attach() }

// Client talks to the chain within the process.
func (c *Chain) Client() *ethclient.Client { return c.client }

// Head is the number of the newest block.
func (c *Chain) Head() uint64 { return c.chain.Head().Number.Uint64() }

// Mine makes n blocks and returns the last one's hash. What waits goes into the first.
func (c *Chain) Mine(n int) common.Hash {
	hash := c.chain.Head().Hash()
	for range n {
		hash = c.chain.Mine()
	}
	return hash
}

// SetAutomine switches the making of blocks on demand on or off.
func (c *Chain) SetAutomine(on bool) {
	c.manual = !on
	c.chain.SetAutomine(on)
}

// Send signs and sends a transaction from one of the accounts, without waiting for it. A nil recipient deploys.
func (c *Chain) Send(t testing.TB, account int, to *common.Address, value *big.Int, data []byte) *types.Transaction {
	t.Helper()
	ctx, from := context.Background(), c.Accounts[account]
	nonce, err := c.client.PendingNonceAt(ctx, from.Address)
	if err != nil {
		t.Fatalf("read the nonce: %v", err)
	}
	gas, err := c.client.EstimateGas(ctx, ethereum.CallMsg{From: from.Address, To: to, Value: value, Data: data})
	if err != nil {
		t.Fatalf("estimate the transaction: %v", err)
	}
	return c.SendRaw(t, account, &types.DynamicFeeTx{
		ChainID: big.NewInt(devnet.ChainID), Nonce: nonce, To: to, Value: value, Data: data,
		Gas: gas + gas/2, GasTipCap: big.NewInt(1), GasFeeCap: big.NewInt(1_000_000_000),
	})
}

// SendRaw signs and sends the given transaction as it is: any nonce, any gas, also one that will revert.
func (c *Chain) SendRaw(t testing.TB, account int, inner types.TxData) *types.Transaction {
	t.Helper()
	tx, err := types.SignNewTx(c.Accounts[account].Key, types.LatestSignerForChainID(big.NewInt(devnet.ChainID)), inner)
	if err != nil {
		t.Fatalf("sign the transaction: %v", err)
	}
	if err := c.client.SendTransaction(context.Background(), tx); err != nil {
		t.Fatalf("send the transaction: %v", err)
	}
	return tx
}

// Await waits for the transaction's receipt; where blocks are made by hand it makes one.
func (c *Chain) Await(t testing.TB, tx common.Hash) *types.Receipt {
	t.Helper()
	if c.manual {
		c.Mine(1)
	}
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		receipt, err := c.client.TransactionReceipt(ctx, tx)
		if err == nil && c.Head() >= receipt.BlockNumber.Uint64() {
			return receipt
		}
		// A receipt can be read a moment before the block is the head: what is asked next would go to the state before it.
		// A node that has just started may still be busy with its index: the answer is "not yet".
		if err != nil && !errors.Is(err, ethereum.NotFound) && !strings.Contains(err.Error(), "indexing is in progress") {
			t.Fatalf("read the receipt of %s: %v", tx, err)
		}
		select {
		case <-ctx.Done():
			t.Fatalf("transaction %s was not mined in %s", tx, waitLimit)
		case <-tick.C:
		}
	}
}

// Deploy deploys a contract and returns its address. Constructor arguments are Go values as go-ethereum's abi package takes them.
func (c *Chain) Deploy(t testing.TB, artifact contracts.Artifact, args ...any) common.Address {
	t.Helper()
	return c.DeployAs(t, helperAccount, artifact, args...)
}

// DeployAs deploys a contract from one of the accounts.
func (c *Chain) DeployAs(t testing.TB, account int, artifact contracts.Artifact, args ...any) common.Address {
	t.Helper()
	data, err := artifact.DeployData(args...)
	if err != nil {
		t.Fatal(err)
	}
	receipt := c.Await(t, c.Send(t, account, nil, nil, data).Hash())
	if receipt.Status != types.ReceiptStatusSuccessful {
		t.Fatalf("the deployment of %s reverted", artifact.Name)
	}
	return receipt.ContractAddress
}

// Transact calls a contract's function in a transaction and waits for its receipt. Overloads go by go-ethereum's names (over, over0, …).
func (c *Chain) Transact(t testing.TB, account int, to common.Address, artifact contracts.Artifact, method string, args ...any) *types.Receipt {
	t.Helper()
	data, err := artifact.Parsed.Pack(method, args...)
	if err != nil {
		t.Fatalf("encode %s: %v", method, err)
	}
	return c.Await(t, c.Send(t, account, &to, nil, data).Hash())
}
