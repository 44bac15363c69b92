package chain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"
)

// remoteTimeout is how long a remote signer may take; behind it may be a slow device.
const remoteTimeout = 30 * time.Second

// RemoteSigner signs by asking another program over JSON-RPC: Web3Signer (eth_accounts, eth_signTransaction) or Clef (account_list, account_signTransaction).
// What comes back is checked: it must be the same transaction, with the signature of the address.
type RemoteSigner struct {
	client    *rpc.Client
	http      *http.Client
	host      string // for messages: the rest of the URL may hold a password
	sign      string // the method
	addresses []common.Address
}

var _ Signer = (*RemoteSigner)(nil)

// DialRemoteSigner asks the signer at the URL (http, https) for its accounts.
func DialRemoteSigner(ctx context.Context, address string) (*RemoteSigner, error) {
	s := &RemoteSigner{
		host: redact(address), http: &http.Client{Timeout: remoteTimeout, Transport: boundedTransport{&http.Transport{MaxIdleConnsPerHost: signWidth}}},
	}
	var err error
	if s.client, err = rpc.DialOptions(ctx, address, rpc.WithHTTPClient(s.http)); err != nil {
		return nil, fmt.Errorf("reach the signer at %s: %w", s.host, bare(err))
	}
	s.sign = "eth_signTransaction"
	err = s.client.CallContext(ctx, &s.addresses, "eth_accounts")
	if notOffered(err) {
		s.sign = "account_signTransaction"
		err = s.client.CallContext(ctx, &s.addresses, "account_list")
	}
	if err == nil && len(s.addresses) == 0 {
		err = errors.New("it has no account")
	}
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("ask the signer at %s for its accounts: %w", s.host, bare(err))
	}
	return s, nil
}

// Close ends the connections.
func (s *RemoteSigner) Close() {
	s.client.Close()
	s.http.CloseIdleConnections()
}

// Addresses implements Signer. They are those of the moment of DialRemoteSigner.
func (s *RemoteSigner) Addresses() []common.Address {
	return append([]common.Address(nil), s.addresses...)
}

// signArgs is a transaction as both dialects take it.
type signArgs struct {
	From     common.Address  `json:"from"`
	To       *common.Address `json:"to,omitempty"`
	Gas      hexutil.Uint64  `json:"gas"`
	GasPrice *hexutil.Big    `json:"gasPrice,omitempty"`
	MaxFee   *hexutil.Big    `json:"maxFeePerGas,omitempty"`
	MaxTip   *hexutil.Big    `json:"maxPriorityFeePerGas,omitempty"`
	Value    *hexutil.Big    `json:"value"`
	Nonce    hexutil.Uint64  `json:"nonce"`
	Data     hexutil.Bytes   `json:"data"`
	ChainID  *hexutil.Big    `json:"chainId"`
}

// Local implements Signer.
func (s *RemoteSigner) Local(common.Address) bool { return false }

// Sign implements Signer.
func (s *RemoteSigner) Sign(ctx context.Context, address common.Address, tx *types.Transaction, chainID *big.Int) (*types.Transaction, error) {
	args := signArgs{
		From: address, To: tx.To(), Gas: hexutil.Uint64(tx.Gas()), Value: (*hexutil.Big)(tx.Value()), Nonce: hexutil.Uint64(tx.Nonce()),
		Data: tx.Data(), ChainID: (*hexutil.Big)(chainID),
	}
	if tx.Type() == types.DynamicFeeTxType {
		args.MaxFee, args.MaxTip = (*hexutil.Big)(tx.GasFeeCap()), (*hexutil.Big)(tx.GasTipCap())
	} else {
		args.GasPrice = (*hexutil.Big)(tx.GasPrice())
	}
	var answer json.RawMessage
	if err := s.client.CallContext(ctx, &answer, s.sign, args); err != nil {
		if definite(err) {
			return nil, fmt.Errorf("sign for %s: the signer at %s refuses: %w", address, s.host, err)
		}
		return nil, fmt.Errorf("sign for %s: %w: %s: %w", address, errSignerUnreachable, s.host, bare(err))
	}
	signed, err := readSigned(answer)
	if err != nil {
		return nil, fmt.Errorf("sign for %s: the answer of the signer at %s: %w", address, s.host, err)
	}
	rules := types.LatestSignerForChainID(chainID)
	from, err := types.Sender(rules, signed)
	switch {
	case err != nil:
		return nil, fmt.Errorf("sign for %s: the answer of the signer at %s: %w", address, s.host, err)
	case from != address:
		return nil, fmt.Errorf("sign for %s: the signer at %s signed as %s", address, s.host, from)
	case rules.Hash(signed) != rules.Hash(tx):
		return nil, fmt.Errorf("sign for %s: the signer at %s signed another transaction than it was asked to", address, s.host)
	}
	return signed, nil
}

// readSigned takes the bytes as a string (Web3Signer), or in an object's member raw (Clef and geth).
func readSigned(answer json.RawMessage) (*types.Transaction, error) {
	var raw hexutil.Bytes
	if err := json.Unmarshal(answer, &raw); err != nil {
		var object struct {
			Raw hexutil.Bytes `json:"raw"`
		}
		if err := json.Unmarshal(answer, &object); err != nil || len(object.Raw) == 0 {
			return nil, errors.New("it is neither 0x hex nor an object with the member raw")
		}
		raw = object.Raw
	}
	return decodeTx(raw)
}

// bare drops the URL of an HTTP error, which may hold a password.
func bare(err error) error {
	var withURL *url.Error
	if errors.As(err, &withURL) {
		return withURL.Err
	}
	return err
}
