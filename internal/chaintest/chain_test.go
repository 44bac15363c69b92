package chaintest_test

import (
	"context"
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/rpc"
	"go.uber.org/goleak"

	"github.com/pactwire/pactwire/contracts"
	"github.com/pactwire/pactwire/internal/chaintest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, chaintest.IgnoreLeaks()...) }

func TestDeployTransactCallOverBothTransports(t *testing.T) {
	t.Parallel()
	chain := chaintest.New(t)
	storage := contracts.SimpleStorage()
	address := chain.Deploy(t, storage)
	receipt := chain.Transact(t, 1, address, storage, "set", big.NewInt(42))
	if receipt.Status != types.ReceiptStatusSuccessful || len(receipt.Logs) != 1 {
		t.Fatalf("receipt: status %d, %d logs", receipt.Status, len(receipt.Logs))
	}
	data, err := storage.Parsed.Pack("get")
	if err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{chain.HTTPURL(), chain.WSURL()} {
		client, err := ethclient.Dial(url)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		out, err := client.CallContract(context.Background(), ethereum.CallMsg{To: &address, Data: data}, nil)
		if err != nil {
			t.Fatalf("%s: %v", url, err)
		}
		if got := new(big.Int).SetBytes(out); got.Int64() != 42 {
			t.Errorf("%s: get() = %s", url, got)
		}
	}
}

func TestManualMiningWaitsForMine(t *testing.T) {
	t.Parallel()
	chain := chaintest.New(t, chaintest.Manual())
	head := chain.Head()
	one, two := chain.Accounts[1].Address, chain.Accounts[2].Address
	first := chain.Send(t, 1, &two, big.NewInt(1), nil)
	second := chain.Send(t, 2, &one, big.NewInt(1), nil)
	if _, err := chain.Client().TransactionReceipt(context.Background(), first.Hash()); err == nil {
		t.Fatal("mined without being asked")
	}
	chain.Mine(1)
	for _, tx := range []*types.Transaction{first, second} {
		receipt, err := chain.Client().TransactionReceipt(context.Background(), tx.Hash())
		if err != nil {
			t.Fatal(err)
		}
		if receipt.BlockNumber.Uint64() != head+1 {
			t.Errorf("mined in block %d, want %d", receipt.BlockNumber, head+1)
		}
	}
	chain.SetAutomine(true)
	third := chain.Send(t, 1, &two, big.NewInt(1), nil)
	if got := chain.Await(t, third.Hash()).BlockNumber.Uint64(); got != head+2 {
		t.Errorf("mined in block %d, want %d", got, head+2)
	}
}

func TestReorgKeepsOrDropsTransactionsAndTellsSubscribers(t *testing.T) {
	t.Parallel()
	chain := chaintest.New(t)
	storage := contracts.SimpleStorage()
	address := chain.Deploy(t, storage)

	client, err := ethclient.Dial(chain.WSURL())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	logs := make(chan types.Log, 100)
	subscription, err := client.SubscribeFilterLogs(context.Background(), ethereum.FilterQuery{}, logs)
	if err != nil {
		t.Fatal(err)
	}
	defer subscription.Unsubscribe()
	next := func() types.Log {
		t.Helper()
		select {
		case log := <-logs:
			return log
		case <-time.After(10 * time.Second):
			t.Fatal("no log came")
			return types.Log{}
		}
	}

	var old []*types.Receipt
	for i := range 3 {
		old = append(old, chain.Transact(t, 1, address, storage, "set", big.NewInt(int64(i))))
		if log := next(); log.Removed || log.BlockHash != old[i].BlockHash {
			t.Fatalf("log %d: %+v", i, log)
		}
	}
	head := chain.Head()
	chain.Reorg(t, 2)
	if chain.Head() != head+1 {
		t.Errorf("head is %d after the reorganisation, want %d", chain.Head(), head+1)
	}
	for i, before := range old {
		after := chain.Await(t, before.TxHash)
		if same := after.BlockHash == before.BlockHash; same != (i == 0) {
			t.Errorf("transaction %d: block %s, before %s", i, after.BlockHash, before.BlockHash)
		}
	}
	removed, added := 0, 0
	for removed < 2 || added < 2 {
		if next().Removed {
			removed++
		} else {
			added++
		}
	}

	undone := chain.ReorgDropping(t, 2+1) // the block of both, and the empty one
	if len(undone) != 2 {
		t.Fatalf("%d transactions undone, want 2", len(undone))
	}
	for _, tx := range undone {
		if _, err := chain.Client().TransactionReceipt(context.Background(), tx.Hash()); err == nil {
			t.Errorf("%s is still mined", tx.Hash())
		}
	}
	// Other content in the place of the dropped.
	if got := chain.Transact(t, 1, address, storage, "set", big.NewInt(77)); got.Status != 1 {
		t.Error("the new branch takes no transactions")
	}
}

func TestSeveralChainsAtOnce(t *testing.T) {
	t.Parallel()
	a, b := chaintest.New(t), chaintest.New(t)
	a.Mine(5)
	if a.Head() != b.Head()+5 {
		t.Errorf("heads %d and %d", a.Head(), b.Head())
	}
}

func TestTheZooIsAlive(t *testing.T) {
	t.Parallel()
	chain := chaintest.New(t)
	zoo := contracts.Zoo()
	address := chain.Deploy(t, zoo, "zoo")
	if got := chain.Transact(t, 1, address, zoo, "emitAll"); got.Status != 1 || len(got.Logs) != 15 {
		t.Errorf("emitAll: status %d, %d logs", got.Status, len(got.Logs))
	}
	if got := chain.Transact(t, 1, address, zoo, "emitMany", big.NewInt(300)); len(got.Logs) != 300 {
		t.Errorf("emitMany: %d logs", len(got.Logs))
	}
	if got := chain.Transact(t, 1, address, zoo, "emitText", []byte{0xff, 0, 'x'}); len(got.Logs) != 1 {
		t.Errorf("emitText: %d logs", len(got.Logs))
	}

	// Both estimates succeed before either is mined; the second transaction then fails.
	chain.SetAutomine(false)
	claim, err := zoo.Parsed.Pack("claim", big.NewInt(1))
	if err != nil {
		t.Fatal(err)
	}
	first, second := chain.Send(t, 1, &address, nil, claim), chain.Send(t, 1, &address, nil, claim)
	chain.Mine(1)
	for tx, want := range map[*types.Transaction]uint64{first: 1, second: 0} {
		receipt, err := chain.Client().TransactionReceipt(context.Background(), tx.Hash())
		if err != nil {
			t.Fatal(err)
		}
		if receipt.Status != want {
			t.Errorf("nonce %d: status %d, want %d", tx.Nonce(), receipt.Status, want)
		}
	}

	late, err := zoo.Parsed.Pack("notAfter", new(big.Int).SetUint64(chain.Head()))
	if err != nil {
		t.Fatal(err)
	}
	tx := chain.Send(t, 1, &address, nil, late)
	chain.Mine(1)
	receipt, err := chain.Client().TransactionReceipt(context.Background(), tx.Hash())
	if err != nil {
		t.Fatal(err)
	}
	if receipt.Status != 0 {
		t.Error("notAfter succeeded though it was mined too late")
	}
}

func TestFailuresCarryTheirData(t *testing.T) {
	t.Parallel()
	chain := chaintest.New(t)
	zoo := contracts.Zoo()
	address := chain.Deploy(t, zoo, "zoo")
	for method, args := range map[string][]any{
		"failWith": {"no"}, "failPlain": nil, "failDenied": {big.NewInt(5), "why"}, "failAssert": nil,
		"failNested": {big.NewInt(1), big.NewInt(-2), []*big.Int{big.NewInt(3)}}, "failDivision": {big.NewInt(0)},
		"failRaw": {[]byte{1, 2, 3}},
	} {
		data, err := zoo.Parsed.Pack(method, args...)
		if err != nil {
			t.Fatal(err)
		}
		_, err = chain.Client().CallContract(context.Background(), ethereum.CallMsg{To: &address, Data: data}, nil)
		failure, ok := err.(rpc.DataError)
		if !ok {
			t.Errorf("%s: no revert data in %v", method, err)
			continue
		}
		if text, _ := failure.ErrorData().(string); len(text) < 2+2*3 {
			t.Errorf("%s: revert data %q", method, text)
		}
	}
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		chaintest.New(b).Stop(b)
	}
}
