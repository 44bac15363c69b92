package chain

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/jmoiron/sqlx"

	"github.com/pactwire/pactwire/contracts"
	"github.com/pactwire/pactwire/internal/chaintest"
)

// signingServer is the far side: a signer that speaks one of the two dialects.
type signingServer struct {
	*httptest.Server
	clef bool
	keys []*ecdsa.PrivateKey
	down atomic.Bool                      // answers 503
	bend func(*types.DynamicFeeTx)        // changes what is signed
	as   atomic.Pointer[ecdsa.PrivateKey] // signs as another
}

func newSigningServer(t testing.TB, clef bool, keys ...*ecdsa.PrivateKey) *signingServer {
	t.Helper()
	s := &signingServer{clef: clef, keys: keys}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *signingServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.down.Load() {
		http.Error(w, "down", http.StatusServiceUnavailable)
		return
	}
	var request struct {
		ID     json.RawMessage
		Method string
		Params []json.RawMessage
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer := map[string]any{"jsonrpc": "2.0", "id": request.ID}
	accounts, sign := "eth_accounts", "eth_signTransaction"
	if s.clef {
		accounts, sign = "account_list", "account_signTransaction"
	}
	switch request.Method {
	case accounts:
		var all []common.Address
		for _, key := range s.keys {
			all = append(all, crypto.PubkeyToAddress(key.PublicKey))
		}
		answer["result"] = all
	case sign:
		raw, refusal := s.signed(request.Params)
		switch {
		case refusal != "":
			answer["error"] = map[string]any{"code": -32000, "message": refusal}
		case s.clef:
			answer["result"] = map[string]any{"raw": raw, "tx": map[string]any{}}
		default:
			answer["result"] = raw
		}
	default:
		answer["error"] = map[string]any{"code": -32601, "message": "the method " + request.Method + " does not exist"}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func (s *signingServer) signed(params []json.RawMessage) (hexutil.Bytes, string) {
	var a struct {
		From                                                         common.Address
		To                                                           *common.Address
		Gas, Nonce                                                   hexutil.Uint64
		Value, GasPrice, MaxFeePerGas, MaxPriorityFeePerGas, ChainID *hexutil.Big
		Data                                                         hexutil.Bytes
	}
	if len(params) != 1 || json.Unmarshal(params[0], &a) != nil {
		return nil, "bad parameters"
	}
	var key *ecdsa.PrivateKey
	for _, k := range s.keys {
		if crypto.PubkeyToAddress(k.PublicKey) == a.From {
			key = k
		}
	}
	if key == nil {
		return nil, "unknown account"
	}
	if other := s.as.Load(); other != nil {
		key = other
	}
	var inner types.TxData
	if a.GasPrice != nil {
		inner = &types.LegacyTx{Nonce: uint64(a.Nonce), GasPrice: a.GasPrice.ToInt(), Gas: uint64(a.Gas), To: a.To, Value: a.Value.ToInt(), Data: a.Data}
	} else {
		tx := &types.DynamicFeeTx{
			ChainID: a.ChainID.ToInt(), Nonce: uint64(a.Nonce), GasTipCap: a.MaxPriorityFeePerGas.ToInt(), GasFeeCap: a.MaxFeePerGas.ToInt(), Gas: uint64(a.Gas),
			To: a.To, Value: a.Value.ToInt(), Data: a.Data,
		}
		if s.bend != nil {
			s.bend(tx)
		}
		inner = tx
	}
	tx, err := types.SignNewTx(key, types.LatestSignerForChainID(a.ChainID.ToInt()), inner)
	if err != nil {
		return nil, err.Error()
	}
	raw, err := tx.MarshalBinary()
	if err != nil {
		return nil, err.Error()
	}
	return raw, ""
}

func TestRemoteSignerSignsEverything(t *testing.T) {
	t.Parallel()
	key, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	address, to, chainID := crypto.PubkeyToAddress(key.PublicKey), common.Address{7}, big.NewInt(31337)
	for name, clef := range map[string]bool{"web3signer": false, "clef": true} {
		server := newSigningServer(t, clef, key)
		s, err := DialRemoteSigner(context.Background(), server.URL)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		t.Cleanup(s.Close)
		if got := s.Addresses(); len(got) != 1 || got[0] != address {
			t.Fatalf("%s: addresses %v", name, got)
		}
		for kind, inner := range map[string]types.TxData{
			"legacy":   &types.LegacyTx{Nonce: 5, GasPrice: big.NewInt(9), Gas: 21_000, To: &to, Value: big.NewInt(3)},
			"dynamic":  &types.DynamicFeeTx{ChainID: chainID, Nonce: 6, GasTipCap: big.NewInt(1), GasFeeCap: big.NewInt(9), Gas: 50_000, To: &to, Value: new(big.Int), Data: []byte{1, 2}},
			"creation": &types.DynamicFeeTx{ChainID: chainID, GasTipCap: new(big.Int), GasFeeCap: new(big.Int), Gas: 90_000, Value: new(big.Int), Data: []byte{0x60}},
		} {
			tx := types.NewTx(inner)
			want, err := types.SignTx(tx, types.LatestSignerForChainID(chainID), key)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := s.Sign(context.Background(), address, tx, chainID); err != nil || got.Hash() != want.Hash() {
				t.Errorf("%s, %s: %v, %v, want %s", name, kind, got, err, want.Hash())
			}
		}
		plain := types.NewTx(&types.DynamicFeeTx{ChainID: chainID, GasTipCap: new(big.Int), GasFeeCap: new(big.Int), Gas: 21_000, To: &to, Value: new(big.Int)})
		if _, err := s.Sign(context.Background(), common.Address{1}, plain, chainID); err == nil || isUnreachable(err) {
			t.Errorf("%s: an unknown account: %v", name, err)
		}
		server.bend = func(tx *types.DynamicFeeTx) { tx.Value = big.NewInt(1e18) }
		if _, err := s.Sign(context.Background(), address, plain, chainID); err == nil || !strings.Contains(err.Error(), "another transaction") {
			t.Errorf("%s: a bent transaction: %v", name, err)
		}
		server.bend = nil
		other, err := crypto.GenerateKey()
		if err != nil {
			t.Fatal(err)
		}
		server.as.Store(other)
		if _, err := s.Sign(context.Background(), address, plain, chainID); err == nil || !strings.Contains(err.Error(), "signed as") {
			t.Errorf("%s: another's signature: %v", name, err)
		}
		server.down.Store(true)
		if _, err := s.Sign(context.Background(), address, plain, chainID); !isUnreachable(err) {
			t.Errorf("%s: a signer that is down: %v", name, err)
		}
	}
	if _, err := DialRemoteSigner(context.Background(), "http://user:topsecret@127.0.0.1:1/topsecret"); err == nil || strings.Contains(err.Error(), "topsecret") {
		t.Errorf("the error shows the password: %v", err)
	}
}

// syncBuffer is a log that is written at the same time.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// A remote signer that goes away holds up what it has to sign, and nothing fails; the key and the password of the signer's URL stand in no log and no table.
func TestSubmitsWithARemoteSignerThatGoesAway(t *testing.T) {
	t.Parallel()
	b := newSubmitBench(t, 0, chaintest.Manual())
	a := contracts.SimpleStorage()
	to := b.chain.Deploy(t, a)
	key := b.chain.Accounts[0].Key
	server := newSigningServer(t, false, key)
	remote, err := DialRemoteSigner(context.Background(), strings.Replace(server.URL, "http://", "http://user:topsecret@", 1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(remote.Close)
	b.signer = remote
	logged := &syncBuffer{}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	s := NewSubmitter(SubmitterConfig{Chain: "dev", PollInterval: 20 * time.Millisecond}, b.db, b.client, b.signer,
		slog.New(slog.NewTextHandler(logged, &slog.HandlerOptions{Level: slog.LevelDebug})))
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() { stop(); <-done })
	first := b.create(t, b.call(t, a, to, "set", big.NewInt(1)))
	b.sent(t, first, 1)
	server.down.Store(true)
	second := b.create(t, b.call(t, a, to, "set", big.NewInt(2)))
	until(t, "the missing signer is logged", func() bool { return strings.Contains(logged.String(), "sign transactions") })
	b.chain.Mine(1)
	b.succeeded(t, first) // what is signed goes on
	if op := b.get(t, second); op.Terminal() || len(op.Attempts) > 0 {
		t.Fatalf("without its signer the operation is %s: %s", op.Status, op.Error)
	}
	server.down.Store(false)
	b.sent(t, second, 1)
	b.chain.Mine(1)
	b.succeeded(t, second)

	var dump string
	raw, err := sqlx.Open("postgres", b.url)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	err = raw.Get(&dump, `SELECT string_agg(t, '') FROM (SELECT CAST(o AS text) AS t FROM operations o UNION ALL SELECT CAST(q AS text) FROM outbox q
		UNION ALL SELECT CAST(e AS text) FROM events e UNION ALL SELECT CAST(s AS text) FROM signers s UNION ALL SELECT CAST(r AS text) FROM transactions r) x`)
	if err != nil {
		t.Fatal(err)
	}
	plain := hex.EncodeToString(crypto.FromECDSA(key))
	for where, text := range map[string]string{"log": logged.String(), "database": dump} {
		lower := strings.ToLower(text)
		if len(text) == 0 || strings.Contains(lower, plain) || strings.Contains(lower, "topsecret") {
			t.Errorf("the %s is empty, or holds a secret", where)
		}
	}
}
