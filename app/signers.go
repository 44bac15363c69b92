package app

import (
	"context"
	"fmt"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/pactwire/pactwire/chain"
)

// signers is several signers as one: each keystore of a chain is one of them.
type signers []chain.Signer

var _ chain.Signer = signers(nil)

// Addresses implements chain.Signer.
func (s signers) Addresses() []common.Address {
	var all []common.Address
	for _, one := range s {
		for _, a := range one.Addresses() {
			if !slices.Contains(all, a) {
				all = append(all, a)
			}
		}
	}
	return all
}

// Local implements chain.Signer.
func (s signers) Local(address common.Address) bool {
	for _, one := range s {
		if slices.Contains(one.Addresses(), address) {
			return one.Local(address)
		}
	}
	return false
}

// Sign implements chain.Signer.
func (s signers) Sign(ctx context.Context, address common.Address, tx *types.Transaction, chainID *big.Int) (*types.Transaction, error) {
	for _, one := range s {
		if slices.Contains(one.Addresses(), address) {
			return one.Sign(ctx, address, tx, chainID) //nolint:wrapcheck // it says what it did
		}
	}
	return nil, fmt.Errorf("sign for %s: %w", address, chain.ErrUnknownKey)
}

// openKeys adds a keystore to a chain's signers.
func (a *App) openKeys(chainName string, k KeyConfig) error {
	opened, err := chain.OpenKeystore(k.Keystore, k.PasswordFile)
	if err != nil {
		return fmt.Errorf("keys of chain %s: %w", chainName, err)
	}
	a.signers[chainName] = append(a.signers[chainName], opened)
	return nil
}

// remoteSigners adds a chain's remote signers to its signers, and tries until they answer.
func (s *service) remoteSigners(starting, work context.Context, c ChainConfig, keys signers) (signers, error) {
	for _, k := range c.Keys {
		if k.Remote == "" {
			continue
		}
		part := "signer of chain " + c.Name
		for {
			signer, err := chain.DialRemoteSigner(starting, k.Remote)
			if err == nil {
				context.AfterFunc(work, signer.Close)
				keys = append(keys[:len(keys):len(keys)], signer)
				s.readiness.have(part)
				break
			}
			if starting.Err() != nil {
				return nil, err //nolint:wrapcheck // it says what it did
			}
			s.readiness.need(part, "it does not answer")
			s.log.WarnContext(starting, "a signer cannot be reached; trying again", "chain", c.Name, "error", err)
			if err := pause(starting); err != nil {
				return nil, err
			}
		}
	}
	return keys, nil
}
