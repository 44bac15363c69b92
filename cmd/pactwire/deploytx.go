package main

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/pactwire/pactwire/contract"
	"github.com/pactwire/pactwire/devnet"
)

// deployKey reads --key.
func deployKey(given string) (*ecdsa.PrivateKey, error) {
	if index, err := strconv.ParseUint(given, 10, 8); err == nil {
		accounts, err := devnet.Accounts()
		switch {
		case err != nil:
			return nil, fmt.Errorf("derive the dev accounts: %w", err)
		case index == 0:
			return nil, errors.New("--key 0 is the service's own account; a second program that signs with it would disturb its nonces. Take 1 to 9")
		case index >= uint64(len(accounts)):
			return nil, fmt.Errorf("--key %d: there are the dev accounts 1 to %d", index, len(accounts)-1)
		}
		return accounts[index].Key, nil
	}
	key, err := crypto.HexToECDSA(strings.TrimPrefix(given, "0x"))
	if err != nil {
		return nil, errors.New("--key must be the index of a dev account, 1 to 9, or a private key of 64 hex digits") // the key itself is not repeated
	}
	return key, nil
}

// deploy sends the transaction and waits for its receipt.
func deploy(ctx context.Context, rpcURL string, key *ecdsa.PrivateKey, a artifact, data []byte) (*deployment, error) {
	client, err := ethclient.DialContext(ctx, rpcURL)
	if err != nil {
		return nil, fmt.Errorf("reach the chain at %s: %w", rpcURL, err)
	}
	defer client.Close()
	chainID, err := client.ChainID(ctx)
	if err != nil {
		return nil, fmt.Errorf("reach the chain at %s (is `pactwire dev` running?): %w", rpcURL, err)
	}
	from := crypto.PubkeyToAddress(key.PublicKey)
	nonce, err := client.PendingNonceAt(ctx, from)
	if err != nil {
		return nil, fmt.Errorf("read the nonce of %s: %w", from, err)
	}
	gas, err := client.EstimateGas(ctx, ethereum.CallMsg{From: from, Data: data})
	if err != nil {
		return nil, refusal(err, a, from)
	}
	inner, err := deployTx(ctx, client, chainID, nonce, gas, data)
	if err != nil {
		return nil, err
	}
	tx, err := types.SignNewTx(key, types.LatestSignerForChainID(chainID), inner)
	if err != nil {
		return nil, fmt.Errorf("sign the transaction: %w", err)
	}
	if err := client.SendTransaction(ctx, tx); err != nil {
		return nil, refusal(err, a, from)
	}
	receipt, err := awaitReceipt(ctx, client, tx.Hash())
	if err != nil {
		return nil, err
	}
	if receipt.Status != types.ReceiptStatusSuccessful {
		return nil, fmt.Errorf("the deployment of %s failed in transaction %s, after an estimate that went well: gas used %d of %d",
			a.name, tx.Hash(), receipt.GasUsed, tx.Gas())
	}
	return &deployment{
		Contract: a.name, Address: receipt.ContractAddress.Hex(), TransactionHash: tx.Hash().Hex(), BlockNumber: receipt.BlockNumber.String(),
		GasUsed: strconv.FormatUint(receipt.GasUsed, 10), From: from.Hex(), ChainID: chainID.String(),
	}, nil
}

// deployTx prices the transaction: with a base fee where the chain has one.
func deployTx(ctx context.Context, client *ethclient.Client, chainID *big.Int, nonce, gas uint64, data []byte) (types.TxData, error) {
	head, err := client.HeaderByNumber(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("read the newest block: %w", err)
	}
	gas += gas / 10
	if head.BaseFee == nil {
		price, err := client.SuggestGasPrice(ctx)
		if err != nil {
			return nil, fmt.Errorf("ask for a gas price: %w", err)
		}
		return &types.LegacyTx{Nonce: nonce, GasPrice: price, Gas: gas, Data: data}, nil
	}
	tip, err := client.SuggestGasTipCap(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask for a gas tip: %w", err)
	}
	feeCap := new(big.Int).Add(tip, new(big.Int).Mul(head.BaseFee, big.NewInt(2)))
	return &types.DynamicFeeTx{ChainID: chainID, Nonce: nonce, GasTipCap: tip, GasFeeCap: feeCap, Gas: gas, Data: data}, nil
}

func awaitReceipt(ctx context.Context, client *ethclient.Client, hash common.Hash) (*types.Receipt, error) {
	const first, longest = 5 * time.Millisecond, 500 * time.Millisecond
	for wait := first; ; wait = min(2*wait, longest) {
		receipt, err := client.TransactionReceipt(ctx, hash)
		if err == nil {
			// A receipt can be read a moment before its block is the head; whoever uses the address next must find the contract there.
			if head, err := client.BlockNumber(ctx); err == nil && head >= receipt.BlockNumber.Uint64() {
				return receipt, nil
			}
		}
		// Some nodes answer "transaction indexing is in progress" for a while: not there yet, like not found.
		if err != nil && !errors.Is(err, ethereum.NotFound) && !strings.Contains(err.Error(), "indexing") {
			return nil, fmt.Errorf("read the receipt of %s: %w", hash, err)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for transaction %s to be mined: %w", hash, ctx.Err())
		case <-time.After(wait):
		}
	}
}

// refusal words what a node says against a deployment: the revert's reason where there is one.
func refusal(err error, a artifact, from common.Address) error {
	var withData rpc.DataError
	if errors.As(err, &withData) {
		if text, ok := withData.ErrorData().(string); ok {
			if data, decodeErr := hexutil.Decode(text); decodeErr == nil {
				var errs []contract.Error
				if i, abiErr := contract.FromABI(a.abi); abiErr == nil {
					errs = i.Errors
				}
				return fmt.Errorf("the constructor of %s reverted: %s", a.name, contract.DecodeRevert(data, errs).Reason)
			}
		}
	}
	if strings.Contains(err.Error(), "insufficient funds") {
		return fmt.Errorf("account %s has no funds on this chain to deploy %s: %w", from, a.name, err)
	}
	return fmt.Errorf("the chain refuses to deploy %s: %w", a.name, err)
}
