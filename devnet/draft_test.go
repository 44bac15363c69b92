package devnet

import (
	"encoding/json"
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/consensus/beacon"
	"github.com/ethereum/go-ethereum/consensus/ethash"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/rawdb"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto/kzg4844"
	"github.com/holiman/uint256"

	"github.com/pactwire/pactwire/contracts"
)

var (
	testChainID = big.NewInt(ChainID)
	testSigner  = types.LatestSignerForChainID(testChainID)
)

// examine has a node that knows nothing run all blocks of the chain as blocks from elsewhere, which compares every root, sum and limit with its own, and returns them.
func (c *Chain) examine(t *testing.T) []*types.Block {
	t.Helper()
	genesis, err := genesis()
	if err != nil {
		t.Fatal(err)
	}
	other, err := core.NewBlockChain(rawdb.NewMemoryDatabase(), genesis, beacon.New(ethash.NewFaker()), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Stop()
	var blocks []*types.Block
	for n := uint64(1); n <= c.Head().Number.Uint64(); n++ {
		blocks = append(blocks, c.eth.BlockChain().GetBlockByNumber(n))
	}
	if _, err := other.InsertChain(blocks); err != nil {
		t.Fatal(err)
	}
	head := blocks[len(blocks)-1]
	if other.CurrentBlock().Hash() != head.Hash() {
		t.Fatal("the other node has another head")
	}
	for _, block := range blocks {
		if got, want := receiptsOf(t, c.eth.BlockChain(), block), receiptsOf(t, other, block); got != want {
			t.Fatalf("receipts of block %s: %s, want %s", block.Number(), got, want)
		}
	}
	return blocks
}

func receiptsOf(t *testing.T, chain *core.BlockChain, block *types.Block) string {
	t.Helper()
	text, err := json.Marshal(chain.GetReceiptsByHash(block.Hash()))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func (c *Chain) offer(t *testing.T, account Account, tx types.TxData) *types.Transaction {
	t.Helper()
	signed := types.MustSignNewTx(account.Key, testSigner, tx)
	if err := c.eth.TxPool().Add([]*types.Transaction{signed}, true)[0]; err != nil {
		t.Fatal(err)
	}
	return signed
}

func call(nonce uint64, tip int64, to *common.Address, gas uint64, data []byte) *types.DynamicFeeTx {
	return &types.DynamicFeeTx{ChainID: testChainID, Nonce: nonce, To: to, Gas: gas, Data: data, GasTipCap: big.NewInt(tip), GasFeeCap: big.NewInt(1e10)}
}

// TestBlocksAreWhatAnyNodeTakes makes blocks of everything that there is.
func TestBlocksAreWhatAnyNodeTakes(t *testing.T) {
	t.Parallel()
	c := StartForTest(t, ChainConfig{Manual: true})
	accounts, err := Accounts()
	if err != nil {
		t.Fatal(err)
	}
	storage, zoo := contracts.SimpleStorage(), contracts.Zoo()
	pack := func(a contracts.Artifact, method string, args ...any) []byte {
		data, err := a.Parsed.Pack(method, args...)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	create, err := zoo.DeployData("zoo")
	if err != nil {
		t.Fatal(err)
	}
	first := c.offer(t, accounts[0], call(0, 1, nil, 1_000_000, storage.Bytecode))
	c.offer(t, accounts[1], call(0, 2, nil, 12_000_000, create))
	c.Mine()
	c.Mine() // nothing waits
	receipts := c.eth.BlockChain().GetReceiptsByHash(c.eth.BlockChain().GetBlockByNumber(2).Hash())
	if len(receipts) != 2 || receipts[0].Status != types.ReceiptStatusSuccessful || receipts[1].TxHash != first.Hash() {
		t.Fatalf("receipts %+v", receipts)
	}
	zooAt, at := receipts[0].ContractAddress, receipts[1].ContractAddress

	c.offer(t, accounts[0], call(1, 5, &at, 60_000, pack(storage, "set", big.NewInt(7))))
	c.offer(t, accounts[0], call(2, 5, &at, 60_000, pack(storage, "set", big.NewInt(0)))) // a refund
	c.offer(t, accounts[0], call(3, 5, &at, 22_500, pack(storage, "set", big.NewInt(9)))) // runs out of gas
	c.offer(t, accounts[1], call(1, 3, &zooAt, 100_000, pack(zoo, "failWith", "no")))     // reverts
	c.offer(t, accounts[2], &types.LegacyTx{To: &at, Gas: 60_000, GasPrice: big.NewInt(2e10), Data: pack(storage, "set", big.NewInt(8))})
	c.offer(t, accounts[3], &types.AccessListTx{ChainID: testChainID, To: &accounts[9].Address, Gas: 30_000, GasPrice: big.NewInt(1e10), Value: big.NewInt(1)})
	authorization, err := types.SignSetCode(accounts[5].Key, types.SetCodeAuthorization{ChainID: *uint256.NewInt(ChainID), Address: at})
	if err != nil {
		t.Fatal(err)
	}
	c.offer(t, accounts[4], &types.SetCodeTx{
		ChainID: uint256.NewInt(ChainID), To: accounts[5].Address, Gas: 200_000, GasTipCap: uint256.NewInt(4), GasFeeCap: uint256.NewInt(1e10),
		Data: pack(storage, "set", big.NewInt(3)), AuthList: []types.SetCodeAuthorization{authorization},
	})
	c.offer(t, accounts[6], withBlob(t))
	c.Mine()
	if err := c.AdjustTime(48 * time.Hour); err != nil {
		t.Fatal(err)
	}
	blocks := c.examine(t)
	mixed := blocks[3]
	if n := len(mixed.Transactions()); n != 8 || *mixed.BlobGasUsed() == 0 {
		t.Fatalf("the block holds %d transactions, and %d gas of blobs", n, *mixed.BlobGasUsed())
	}
	var last *big.Int
	for _, tx := range mixed.Transactions() {
		tip, err := tx.EffectiveGasTip(mixed.BaseFee())
		if err != nil || last != nil && tip.Cmp(last) > 0 {
			t.Errorf("a tip of %s after one of %s, %v", tip, last, err)
		}
		last = tip
	}
	if blocks[4].Time() != mixed.Time()+48*3600 {
		t.Errorf("the time went from %d to %d", mixed.Time(), blocks[4].Time())
	}
}

// withBlob is a transaction with an empty blob.
func withBlob(t *testing.T) *types.BlobTx {
	t.Helper()
	blob := new(kzg4844.Blob)
	commitment, err := kzg4844.BlobToCommitment(blob)
	if err != nil {
		t.Fatal(err)
	}
	proofs, err := kzg4844.ComputeCellProofs(blob)
	if err != nil {
		t.Fatal(err)
	}
	sidecar := types.NewBlobTxSidecar(types.BlobSidecarVersion1, []kzg4844.Blob{*blob}, []kzg4844.Commitment{commitment}, proofs)
	return &types.BlobTx{
		ChainID: uint256.NewInt(ChainID), GasTipCap: uint256.NewInt(1e9), GasFeeCap: uint256.NewInt(1e10), Gas: 21_000, BlobFeeCap: uint256.NewInt(1e10),
		BlobHashes: sidecar.BlobHashes(), Sidecar: sidecar,
	}
}

// TestWhatCannotBeInABlockLeavesNoTrace also has the block end when it is full.
func TestWhatCannotBeInABlockLeavesNoTrace(t *testing.T) {
	t.Parallel()
	c := StartForTest(t, ChainConfig{Manual: true})
	accounts, err := Accounts()
	if err != nil {
		t.Fatal(err)
	}
	sign := func(i int, tx types.TxData) *types.Transaction {
		return types.MustSignNewTx(accounts[i].Key, testSigner, tx)
	}
	d, err := newDraft(c.eth.BlockChain(), c.Head(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	defer d.evm.Release()
	nobody := common.HexToAddress("0xaa")
	for name, tx := range map[string]*types.Transaction{
		"a gap":                  sign(0, call(1, 1, &nobody, 21_000, nil)),
		"less than it must have": sign(0, call(0, 1, &nobody, 20_000, nil)),
		"below the base fee":     sign(0, &types.DynamicFeeTx{ChainID: testChainID, To: &nobody, Gas: 21_000, GasFeeCap: big.NewInt(1), GasTipCap: big.NewInt(1)}),
		"beyond EIP-7825":        sign(0, call(0, 1, &nobody, 17_000_000, nil)),
	} {
		if err := d.run(tx); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	if d.gas.Used() != 0 || len(d.body.Transactions) != 0 || d.size != uint64(d.header.Size()) {
		t.Fatalf("gas %d, %d transactions, %d bytes", d.gas.Used(), len(d.body.Transactions), d.size)
	}

	// Four of them fill a block.
	deploy := common.FromHex("60fe5f5360015ff3") // a contract of one INVALID, which uses up all gas at once
	c.offer(t, accounts[0], call(0, 1, nil, 200_000, deploy))
	c.Mine()
	at := c.eth.BlockChain().GetReceiptsByHash(c.Head().Hash())[0].ContractAddress
	for i := range 6 {
		c.offer(t, accounts[i+1], call(0, int64(10-i), &at, 14_500_000, nil))
		c.offer(t, accounts[i+1], call(1, int64(10-i), &nobody, 21_000, nil))
	}
	c.Mine()
	c.Mine()
	blocks := c.examine(t)
	full, rest := blocks[2], blocks[3]
	if len(full.Transactions()) != 8 || len(rest.Transactions()) != 4 {
		t.Errorf("%d transactions and %d gas, then %d", len(full.Transactions()), full.GasUsed(), len(rest.Transactions()))
	}
}
