package devnet_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/pactwire/pactwire/contracts"
	"github.com/pactwire/pactwire/devnet"
)

var signer = types.LatestSignerForChainID(big.NewInt(devnet.ChainID))

func transfer(account devnet.Account, nonce uint64) *types.Transaction {
	to := common.HexToAddress("0x00000000000000000000000000000000000000aa")
	return types.MustSignNewTx(account.Key, signer, &types.DynamicFeeTx{
		ChainID: big.NewInt(devnet.ChainID), Nonce: nonce, To: &to, Value: big.NewInt(1), Gas: 21_000,
		GasTipCap: big.NewInt(1), GasFeeCap: big.NewInt(1_000_000),
	})
}

func awaitReceipt(ctx context.Context, client *ethclient.Client, hash common.Hash) (*types.Receipt, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		receipt, err := client.TransactionReceipt(ctx, hash)
		if err == nil || !errors.Is(err, ethereum.NotFound) {
			return receipt, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("transaction %s was not mined", hash)
		case <-tick.C:
		}
	}
}

func TestAccountsAreTheWellKnownOnes(t *testing.T) {
	t.Parallel()
	accounts, err := devnet.Accounts()
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range map[int]string{
		0: "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
		1: "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
		9: "0xa0Ee7A142d267C1f36714E4a8F75612F20a79720",
	} {
		if got := accounts[i].Address.Hex(); got != want {
			t.Errorf("account %d is %s, want %s", i, got, want)
		}
	}
}

func TestChainContinuesAfterAStop(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	begin := time.Now()
	chain := devnet.StartForTest(t, devnet.ChainConfig{Dir: dir})
	t.Logf("first start took %s", time.Since(begin))
	client := ethclient.NewClient(chain.Attach())
	accounts, _ := devnet.Accounts()
	if number, err := client.BlockNumber(context.Background()); err != nil || number != 1 {
		t.Errorf("a new chain is at block %d, want 1 (%v)", number, err)
	}
	if id, err := client.ChainID(context.Background()); err != nil || id.Int64() != 31337 {
		t.Errorf("chain id %d, %v", id, err)
	}
	balance, err := client.BalanceAt(context.Background(), accounts[9].Address, nil)
	if err != nil || balance.String() != "10000000000000000000000" {
		t.Errorf("balance %s, %v", balance, err)
	}
	tx := transfer(accounts[0], 0)
	if err := client.SendTransaction(context.Background(), tx); err != nil {
		t.Fatal(err)
	}
	before, err := awaitReceipt(context.Background(), client, tx.Hash())
	if err != nil {
		t.Fatal(err)
	}
	client.Close()
	if err := chain.Stop(); err != nil {
		t.Fatal(err)
	}

	begin = time.Now()
	chain = devnet.StartForTest(t, devnet.ChainConfig{Dir: dir})
	t.Logf("second start took %s", time.Since(begin))
	client = ethclient.NewClient(chain.Attach())
	defer client.Close()
	after, err := client.TransactionReceipt(context.Background(), tx.Hash())
	if err != nil {
		t.Fatal(err)
	}
	if after.BlockHash != before.BlockHash || chain.Head().Hash() != before.BlockHash {
		t.Errorf("the chain has moved: %s, head %s, before %s", after.BlockHash, chain.Head().Hash(), before.BlockHash)
	}
}

// actChain is the process that dies: it sends transactions and prints each one that was answered with a receipt, and at
// the end of each line one that was answered but may still wait.
func actChain(folder string) {
	chain, err := devnet.StartChain(context.Background(), devnet.ChainConfig{Dir: folder, Listen: "127.0.0.1:0"}, discard)
	if err != nil {
		fail(err)
	}
	client, err := ethclient.Dial(chain.WSURL())
	if err != nil {
		fail(err)
	}
	accounts, err := devnet.Accounts()
	if err != nil {
		fail(err)
	}
	var work sync.WaitGroup
	for _, account := range accounts[:4] {
		work.Go(func() {
			nonce, err := client.PendingNonceAt(context.Background(), account.Address)
			for ; err == nil; nonce++ {
				tx := transfer(account, nonce)
				if err = client.SendTransaction(context.Background(), tx); err != nil {
					break
				}
				fmt.Printf("sent %s\n", tx.Hash())
				if nonce%3 == 0 {
					continue // these may still wait when the end comes
				}
				var receipt *types.Receipt
				if receipt, err = awaitReceipt(context.Background(), client, tx.Hash()); err == nil {
					fmt.Printf("mined %s %d\n", tx.Hash(), receipt.BlockNumber)
				}
			}
			fail(err)
		})
	}
	work.Wait()
}

func TestChainSurvivesSuddenDeath(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var sent, mined []common.Hash
	for round := range 6 {
		// Each round begins with the folder that the last one left.
		for _, line := range startVictim(t, "chain", dir).killAfter(t, 40+round*57) {
			words := strings.Fields(line)
			if len(words) < 2 || len(words[1]) != 66 {
				continue // the last line may have been cut
			}
			if words[0] == "mined" {
				mined = append(mined, common.HexToHash(words[1]))
			} else {
				sent = append(sent, common.HexToHash(words[1]))
			}
		}
	}
	chain := devnet.StartForTest(t, devnet.ChainConfig{Dir: dir})
	client := ethclient.NewClient(chain.Attach())
	defer client.Close()
	for _, hash := range sent {
		if _, err := awaitReceipt(context.Background(), client, hash); err != nil {
			t.Errorf("lost a transaction that was taken: %v", err)
		}
	}
	for _, hash := range mined {
		if _, err := client.TransactionReceipt(context.Background(), hash); err != nil {
			t.Errorf("lost a transaction that was answered with a receipt: %s: %v", hash, err)
		}
	}
	if len(mined) < 200 || len(sent) <= len(mined) {
		t.Errorf("the test saw too little: %d sent, %d mined", len(sent), len(mined))
	}
}

func TestABusyPortNamesTheFlag(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, err = devnet.StartChain(context.Background(), devnet.ChainConfig{Listen: listener.Addr().String()}, discard)
	if err == nil || !strings.Contains(err.Error(), "--rpc-listen") {
		t.Errorf("error %v does not name the flag", err)
	}
	if _, err = devnet.StartChain(context.Background(), devnet.ChainConfig{Listen: "nonsense"}, discard); err == nil {
		t.Error("a bad address was taken")
	}
}

func TestAChainFolderHasOneUser(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	devnet.StartForTest(t, devnet.ChainConfig{Dir: dir})
	_, err := devnet.StartChain(context.Background(), devnet.ChainConfig{Dir: dir, Listen: "127.0.0.1:0"}, discard)
	if !errors.Is(err, devnet.ErrFolderInUse) {
		t.Errorf("got %v, want ErrFolderInUse", err)
	}
}

func TestOnePortServesHTTPAndWebSocketToLoopbackPagesOnly(t *testing.T) {
	t.Parallel()
	chain := devnet.StartForTest(t, devnet.ChainConfig{})
	if strings.TrimPrefix(chain.HTTPURL(), "http") != strings.TrimPrefix(chain.WSURL(), "ws") {
		t.Errorf("two ports: %s and %s", chain.HTTPURL(), chain.WSURL())
	}
	for origin, allowed := range map[string]bool{
		"http://localhost:5000": true, "http://127.0.0.1:3000": true, "http://evil.example": false, "http://localhost.evil.example": false,
	} {
		request, err := http.NewRequest(http.MethodPost, chain.HTTPURL(), strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}`))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Origin", origin)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if got := response.Header.Get("Access-Control-Allow-Origin") != ""; got != allowed {
			t.Errorf("HTTP from %s: allowed %v, want %v", origin, got, allowed)
		}
		client, err := rpc.DialWebsocket(context.Background(), chain.WSURL(), origin)
		if (err == nil) != allowed {
			t.Errorf("WebSocket from %s: %v, want allowed %v", origin, err, allowed)
		}
		if err == nil {
			client.Close()
		}
	}
	request, err := http.NewRequest(http.MethodPost, chain.HTTPURL(), bytes.NewReader([]byte(`{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}`)))
	if err != nil {
		t.Fatal(err)
	}
	request.Host = "rebound.example"
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var answer struct{ Result string }
	if json.NewDecoder(response.Body).Decode(&answer) == nil && answer.Result != "" {
		t.Error("a foreign host name was served")
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestLargeBatchesAndUnderpaidTransactions(t *testing.T) {
	t.Parallel()
	chain := devnet.StartForTest(t, devnet.ChainConfig{})
	client, err := rpc.Dial(chain.HTTPURL())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	batch := make([]rpc.BatchElem, 1000)
	for i := range batch {
		batch[i] = rpc.BatchElem{Method: "eth_blockNumber", Result: new(string)}
	}
	if err := client.BatchCall(batch); err != nil || batch[999].Error != nil {
		t.Errorf("a batch of 1000: %v, %v", err, batch[999].Error)
	}
	// A transaction that pays too little waits without keeping the chain busy, and what comes later passes it.
	accounts, _ := devnet.Accounts()
	to := accounts[1].Address
	poor := types.MustSignNewTx(accounts[2].Key, signer, &types.DynamicFeeTx{
		ChainID: big.NewInt(devnet.ChainID), To: &to, Gas: 21_000, GasTipCap: big.NewInt(1), GasFeeCap: big.NewInt(1),
	})
	eth := ethclient.NewClient(client)
	if err := eth.SendTransaction(context.Background(), poor); err != nil {
		t.Skipf("the pool refuses it at once, which is as well: %v", err)
	}
	rich := transfer(accounts[3], 0)
	if err := eth.SendTransaction(context.Background(), rich); err != nil {
		t.Fatal(err)
	}
	if _, err := awaitReceipt(context.Background(), eth, rich.Hash()); err != nil {
		t.Fatal(err)
	}
	if head := chain.Head().Number.Uint64(); head > 50 {
		t.Errorf("the chain span up to block %d", head)
	}
}

// BenchmarkSealing is one key's transactions through the WebSocket endpoint, until the last one is mined.
func BenchmarkSealing(b *testing.B) {
	for _, place := range []string{"memory", "disk"} {
		b.Run(place, func(b *testing.B) {
			cfg := devnet.ChainConfig{}
			if place == "disk" {
				cfg.Dir = b.TempDir()
			}
			chain := devnet.StartForTest(b, cfg)
			client, err := rpc.Dial(chain.WSURL())
			if err != nil {
				b.Fatal(err)
			}
			defer client.Close()
			accounts, _ := devnet.Accounts()
			storage := contracts.SimpleStorage()
			deployment := types.MustSignNewTx(accounts[0].Key, signer, &types.DynamicFeeTx{
				ChainID: big.NewInt(devnet.ChainID), Gas: 1_000_000, Data: storage.Bytecode, GasTipCap: big.NewInt(1), GasFeeCap: big.NewInt(1e9),
			})
			eth := ethclient.NewClient(client)
			if err := eth.SendTransaction(context.Background(), deployment); err != nil {
				b.Fatal(err)
			}
			deployed, err := awaitReceipt(context.Background(), eth, deployment.Hash())
			if err != nil {
				b.Fatal(err)
			}
			raw := make([][]byte, b.N)
			var last common.Hash
			for i := range raw {
				data, _ := storage.Parsed.Pack("set", big.NewInt(int64(i)))
				tx := types.MustSignNewTx(accounts[0].Key, signer, &types.DynamicFeeTx{
					ChainID: big.NewInt(devnet.ChainID), Nonce: uint64(i) + 1, To: &deployed.ContractAddress, Gas: 60_000, Data: data,
					GasTipCap: big.NewInt(1), GasFeeCap: big.NewInt(1e9),
				})
				raw[i], _ = tx.MarshalBinary()
				last = tx.Hash()
			}
			head := chain.Head().Number.Uint64()
			b.ResetTimer()
			for at := 0; at < len(raw); at += 50 {
				var batch []rpc.BatchElem
				for _, tx := range raw[at:min(at+50, len(raw))] {
					batch = append(batch, rpc.BatchElem{Method: "eth_sendRawTransaction", Args: []any{fmt.Sprintf("0x%x", tx)}, Result: new(string)})
				}
				if err := client.BatchCall(batch); err != nil || batch[0].Error != nil {
					b.Fatal(err, batch[0].Error)
				}
			}
			if _, err := awaitReceipt(context.Background(), eth, last); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tx/s")
			b.ReportMetric(float64(b.N)/float64(chain.Head().Number.Uint64()-head), "tx/block")
		})
	}
}

// BenchmarkBlock is a round of so many transactions through the WebSocket endpoint, until the head that they bring is announced.
func BenchmarkBlock(b *testing.B) {
	for _, size := range []int{1, 8, 64} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			chain := devnet.StartForTest(b, devnet.ChainConfig{})
			client, err := rpc.Dial(chain.WSURL())
			if err != nil {
				b.Fatal(err)
			}
			defer client.Close()
			accounts, _ := devnet.Accounts()
			heads := make(chan *types.Header, 256)
			subscription, err := ethclient.NewClient(client).SubscribeNewHead(b.Context(), heads)
			if err != nil {
				b.Fatal(err)
			}
			defer subscription.Unsubscribe()
			nonce := uint64(0)
			for b.Loop() {
				batch := make([]rpc.BatchElem, size)
				for i := range batch {
					raw, _ := transfer(accounts[0], nonce).MarshalBinary()
					batch[i] = rpc.BatchElem{Method: "eth_sendRawTransaction", Args: []any{fmt.Sprintf("0x%x", raw)}, Result: new(string)}
					nonce++
				}
				if err := client.BatchCall(batch); err != nil || batch[0].Error != nil {
					b.Fatal(err, batch[0].Error)
				}
				for gas := uint64(0); gas < uint64(size)*params.TxGas; {
					gas += (<-heads).GasUsed
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*size), "µs/tx")
		})
	}
}
