package e2e

import (
	"context"
	"crypto/ecdsa"
	"encoding/json"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/accounts/keystore"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/google/uuid"

	"github.com/pactwire/pactwire/contracts"
	"github.com/pactwire/pactwire/devnet"
	"github.com/pactwire/pactwire/gen"
)

// node is a foreign chain node as a program of its own.
type node struct {
	url    string // WebSocket
	key    *ecdsa.PrivateKey
	client *ethclient.Client
	slow   bool // makes a block each second, and not for each transaction
}

// findNode finds a node's program: by its variable, on PATH, or where the tools are installed.
func findNode(t *testing.T, variable, name string) string {
	t.Helper()
	if path := os.Getenv(variable); path != "" {
		return path
	}
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	for _, path := range []string{"bin/" + name, "tools/node_modules/@foundry-rs/" + name + "-linux-amd64/bin/" + name} {
		if _, err := os.Stat(filepath.Join(root, path)); err == nil {
			path, err = filepath.Abs(filepath.Join(root, path))
			must(t, err)
			return path
		}
	}
	t.Skipf("there is no %s: set %s, or run make nodes-test", name, variable)
	return ""
}

// startNode runs the program until the test ends, and waits until it answers.
func startNode(t *testing.T, url string, program string, args ...string) *ethclient.Client {
	t.Helper()
	output := &lines{}
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = output, output
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	var client *ethclient.Client
	eventually(t, readyLimit, "the node answers", func() bool {
		c, err := ethclient.DialContext(t.Context(), url)
		if err != nil {
			return false
		}
		if _, err := c.ChainID(t.Context()); err != nil {
			c.Close()
			return false
		}
		client = c
		return true
	}, output)
	t.Cleanup(client.Close)
	return client
}

func startGeth(t *testing.T, slow bool) *node {
	program := findNode(t, "PACTWIRE_TEST_GETH", "geth")
	dir, address := t.TempDir(), freeAddress(t)
	_, port, err := net.SplitHostPort(address)
	must(t, err)
	period := "0"
	if slow {
		period = "1"
	}
	n := &node{url: "ws://" + address, slow: slow}
	n.client = startNode(t, n.url, program, "--dev", "--datadir", dir, "--dev.period", period, "--ws", "--ws.addr", "127.0.0.1", "--ws.port", port,
		"--ws.api", "eth,net,web3,debug,txpool", "--ipcdisable", "--nodiscover", "--port", "0", "--authrpc.port", freePort(t), "--verbosity", "2")
	files, err := os.ReadDir(filepath.Join(dir, "keystore"))
	must(t, err)
	text, err := os.ReadFile(filepath.Join(dir, "keystore", files[0].Name()))
	must(t, err)
	key, err := keystore.DecryptKey(text, "")
	must(t, err)
	n.key = key.PrivateKey
	return n
}

func startAnvil(t *testing.T, slow bool) *node {
	program := findNode(t, "PACTWIRE_TEST_ANVIL", "anvil")
	accounts, err := devnet.Accounts()
	must(t, err)
	args := []string{"--port", freePort(t), "--silent"}
	if slow {
		args = append(args, "--block-time", "1")
	}
	n := &node{url: "ws://127.0.0.1:" + args[1], key: accounts[0].Key, slow: slow}
	n.client = startNode(t, n.url, program, args...)
	return n
}

func freePort(t *testing.T) string {
	t.Helper()
	_, port, err := net.SplitHostPort(freeAddress(t))
	must(t, err)
	return port
}

// send sends a transaction of the node's account and waits until it is mined.
func (n *node) send(t testing.TB, to *common.Address, data []byte) *types.Receipt {
	t.Helper()
	ctx := t.Context()
	from := crypto.PubkeyToAddress(n.key.PublicKey)
	chainID, err := n.client.ChainID(ctx)
	must(t, err)
	nonce, err := n.client.PendingNonceAt(ctx, from)
	must(t, err)
	gas, err := n.client.EstimateGas(ctx, ethereum.CallMsg{From: from, To: to, Data: data})
	must(t, err)
	tx, err := types.SignNewTx(n.key, types.LatestSignerForChainID(chainID), &types.DynamicFeeTx{
		ChainID: chainID, Nonce: nonce, GasTipCap: big.NewInt(2e9), GasFeeCap: big.NewInt(1e11), Gas: gas + gas/4, To: to, Data: data,
	})
	must(t, err)
	must(t, n.client.SendTransaction(ctx, tx))
	var receipt *types.Receipt
	eventually(t, 30*time.Second, "the transaction is mined", func() bool {
		receipt, err = n.client.TransactionReceipt(ctx, tx.Hash())
		return err == nil
	}, &lines{})
	if receipt.Status != types.ReceiptStatusSuccessful {
		t.Fatalf("transaction %s failed", tx.Hash())
	}
	return receipt
}

func (n *node) deploy(t testing.TB, a contracts.Artifact, args ...any) (common.Address, uint64) {
	t.Helper()
	data, err := a.DeployData(args...)
	must(t, err)
	receipt := n.send(t, nil, data)
	return receipt.ContractAddress, receipt.BlockNumber.Uint64()
}

// production are the settings of `pactwire serve` on the node, with a keystore file and the pin contract.
func (n *node) production(t testing.TB) map[string]string {
	t.Helper()
	dir := t.TempDir()
	key, err := keystore.EncryptKey(&keystore.Key{Id: uuid.New(), Address: crypto.PubkeyToAddress(n.key.PublicKey), PrivateKey: n.key}, "pw", keystore.LightScryptN, keystore.LightScryptP)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "key.json"), key, 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "password"), []byte("pw\n"), 0o600))
	pin, block := n.deploy(t, contracts.Pactwire(), "org", "")
	return map[string]string{
		"rpc-url": n.url, "keystore": filepath.Join(dir, "key.json"), "password-file": filepath.Join(dir, "password"),
		"pin-contract": pin.Hex(), "pin-block": fmt.Sprint(block),
	}
}

// The submitter and the reader against other nodes than our own.
func TestOtherNodes(t *testing.T) {
	if testing.Short() {
		t.Skip("starts foreign nodes")
	}
	for name, begin := range map[string]func(*testing.T) *node{
		"geth, on demand":            func(t *testing.T) *node { return startGeth(t, false) },
		"geth, a block a second":     func(t *testing.T) *node { return startGeth(t, true) },
		"anvil, on demand":           func(t *testing.T) *node { return startAnvil(t, false) },
		"anvil, a block each second": func(t *testing.T) *node { return startAnvil(t, true) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			submitTo(t, begin(t))
		})
	}
}

func submitTo(t *testing.T, n *node) {
	version, err := clientVersion(n.client)
	must(t, err)
	t.Log(version)
	s := startService(t, &service{settings: n.production(t)}, testDatabase(t))
	contract, _ := n.deploy(t, contracts.SimpleStorage()) // the key is used by another program, too
	address := strings.ToLower(contract.Hex())
	iface := s.broadcast(t, "storage", "1", contracts.SimpleStorage().ABI)
	s.createAPI(t, "simple", *iface.ID, &address)

	// What would happen, and what will not.
	r, err := s.client.InvokeContractAPIWithResponse(t.Context(), ns, "simple", "set", &gen.InvokeContractAPIParams{DryRun: ptr(true)}, gen.InvokeRequest{Input: json.RawMessage(`{"newValue":5}`)})
	must(t, err)
	if d := r.ApplicationVndPactwireDryrunJSON200; d == nil || !d.Succeeds || len(d.Logs) != 1 || d.Logs[0].Name == nil || d.LogsUnavailable != nil {
		t.Errorf("dry run: %s %s", r.Status(), r.Body)
	}

	// Many at once.
	const invokes, callers = 300, 64
	values := make(chan int)
	var calling sync.WaitGroup
	var first sync.Once // failure
	for range callers {
		calling.Go(func() {
			for v := range values {
				r, err := s.client.InvokeContractAPIWithResponse(t.Context(), ns, "simple", "set", &gen.InvokeContractAPIParams{Confirm: ptr(true)},
					gen.InvokeRequest{Input: json.RawMessage(fmt.Sprintf(`{"newValue":%d}`, v))})
				if err == nil && r.JSON200 != nil && r.JSON200.Status == "Succeeded" {
					continue
				}
				if t.Errorf("invoke %d: %v", v, err); err == nil {
					t.Logf("it is %s %s", r.Status(), r.Body)
				}
				first.Do(func() { n.describe(t, s) })
			}
		})
	}
	for v := range invokes {
		values <- v
		if v == invokes/2 { // another program sends with the same key meanwhile; its nonce may be one that we have given
			go n.foreign(t.Context())
		}
	}
	close(values)
	calling.Wait()
	if got := n.changes(t, contract); got != invokes {
		t.Errorf("%d values were set on the chain, want %d", got, invokes)
	}
	if n.slow {
		zeroBefore(t, s)
		cancelOn(t, s)
	}
}

// zeroBefore has the chain run a call on another state than it was estimated on: the slot that it writes was set to zero right before, which makes it dear.
func zeroBefore(t *testing.T, s *service) {
	t.Helper()
	zero, after := s.accept(t, "set", `{"newValue":0}`), s.accept(t, "set", `{"newValue":100000}`)
	for _, id := range []uuid.UUID{zero, after} {
		var op gen.Operation
		eventually(t, 30*time.Second, "the operation ends", func() bool {
			op = s.operation(t, id)
			return op.Status == "Succeeded" || op.Status == "Failed"
		}, &lines{})
		if op.Status != "Succeeded" {
			t.Errorf("operation %s failed: %s", id, *op.Error)
		}
	}
}

// describe tells what the service and the node know of transactions that do not end.
func (n *node) describe(t *testing.T, s *service) {
	t.Logf("the oldest that are pending: %s", s.get(t, "/api/v1/namespaces/"+ns+"/operations?status=Pending&sort=created&limit=3").body)
	t.Logf("status: %s", s.get(t, "/api/v1/namespaces/"+ns+"/status").body)
	from := crypto.PubkeyToAddress(n.key.PublicKey)
	var mined, next string
	var pool map[string]map[string]any
	must(t, n.client.Client().Call(&mined, "eth_getTransactionCount", from, "latest"))
	must(t, n.client.Client().Call(&next, "eth_getTransactionCount", from, "pending"))
	must(t, n.client.Client().Call(&pool, "txpool_inspect"))
	t.Logf("the node's next nonces: %s mined, %s pending; pool: %v", mined, next, pool)
}

// foreign sends a transfer of nothing with the node's account, and does not mind being refused.
func (n *node) foreign(ctx context.Context) {
	from := crypto.PubkeyToAddress(n.key.PublicKey)
	chainID, err := n.client.ChainID(ctx)
	if err != nil {
		return
	}
	nonce, err := n.client.PendingNonceAt(ctx, from)
	if err != nil {
		return
	}
	tx, err := types.SignNewTx(n.key, types.LatestSignerForChainID(chainID), &types.DynamicFeeTx{
		ChainID: chainID, Nonce: nonce, GasTipCap: big.NewInt(2e9), GasFeeCap: big.NewInt(1e11), Gas: 21_000, To: &from, Value: new(big.Int),
	})
	if err == nil {
		_ = n.client.SendTransaction(ctx, tx)
	}
}

// changes counts the contract's events on the chain.
func (n *node) changes(t testing.TB, address common.Address) int {
	t.Helper()
	logs, err := n.client.FilterLogs(t.Context(), ethereum.FilterQuery{Addresses: []common.Address{address}})
	must(t, err)
	seen := map[string]int{}
	for _, l := range logs {
		seen[common.Bytes2Hex(l.Data)]++
		if seen[common.Bytes2Hex(l.Data)] > 1 {
			t.Errorf("a value was set twice: %x", l.Data)
		}
	}
	return len(logs)
}

// cancelOn cancels and speeds up between two blocks. Which of the two transactions wins is the chain's business.
func cancelOn(t *testing.T, s *service) {
	id, fast := s.accept(t, "set", `{"newValue":100001}`), s.accept(t, "set", `{"newValue":100002}`)
	s.sent(t, id, 1)
	cancel, err := s.client.CancelOperationWithResponse(t.Context(), ns, id, &gen.CancelOperationParams{Confirm: ptr(true)}, gen.OperationChange{})
	must(t, err)
	op := s.operation(t, id)
	switch {
	case cancel.StatusCode() == http.StatusConflict && op.Status == "Succeeded": // mined before
	case cancel.JSON200 == nil:
		t.Errorf("cancel: %s %s", cancel.Status(), cancel.Body)
	case op.Status == "Failed" && strings.HasPrefix(*op.Error, "cancelled"), op.Status == "Succeeded":
	default:
		t.Errorf("the cancelled operation is %s", cancel.Body)
	}
	t.Logf("the cancelled operation is %s after %d attempts", op.Status, len(op.Attempts))
	faster, err := s.client.SpeedUpOperationWithResponse(t.Context(), ns, fast, &gen.SpeedUpOperationParams{Confirm: ptr(true)}, gen.OperationChange{})
	must(t, err)
	if faster.StatusCode() != http.StatusConflict && (faster.JSON200 == nil || faster.JSON200.Status != "Succeeded") {
		t.Errorf("speed up: %s %s", faster.Status(), faster.Body)
	}
}

func clientVersion(c *ethclient.Client) (version string, err error) {
	return version, c.Client().Call(&version, "web3_clientVersion")
}
