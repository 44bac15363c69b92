package devnet

import (
	"crypto/ecdsa"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/sha512"
	"encoding/binary"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

// Mnemonic is the phrase that development chains fund by custom. Its keys are known to everybody.
const Mnemonic = "test test test test test test test test test test test junk"

// accountCount is how many of the mnemonic's accounts hold money on the dev chain.
const accountCount = 10

// Account is a funded account of the dev chain.
type Account struct {
	Address common.Address
	Key     *ecdsa.PrivateKey
}

// Accounts are the funded accounts: m/44'/60'/0'/0/0 to 9 of Mnemonic. The service signs with the first one; the others are for
// external tools.
func Accounts() ([]Account, error) {
	accounts := make([]Account, accountCount)
	for i := range accounts {
		key, err := deriveKey(Mnemonic, uint32(i))
		if err != nil {
			return nil, fmt.Errorf("derive development account %d: %w", i, err)
		}
		accounts[i] = Account{Address: crypto.PubkeyToAddress(key.PublicKey), Key: key}
	}
	return accounts, nil
}

// deriveKey follows BIP-39 (phrase to seed) and BIP-32 (seed to key) along m/44'/60'/0'/0/index.
func deriveKey(mnemonic string, index uint32) (*ecdsa.PrivateKey, error) {
	seed, err := pbkdf2.Key(sha512.New, mnemonic, []byte("mnemonic"), 2048, 64)
	if err != nil {
		return nil, fmt.Errorf("derive the seed: %w", err)
	}
	key, chainCode := split([]byte("Bitcoin seed"), seed)
	const hardened = 1 << 31
	for _, step := range []uint32{44 + hardened, 60 + hardened, 0 + hardened, 0, index} {
		data := make([]byte, 0, 37)
		if step >= hardened {
			data = append(append(data, 0), key.FillBytes(make([]byte, 32))...)
		} else {
			parent, err := crypto.ToECDSA(key.FillBytes(make([]byte, 32)))
			if err != nil {
				return nil, fmt.Errorf("derive a child key: %w", err)
			}
			data = append(data, crypto.CompressPubkey(&parent.PublicKey)...)
		}
		tweak, next := split(chainCode, binary.BigEndian.AppendUint32(data, step))
		key.Mod(key.Add(key, tweak), crypto.S256().Params().N)
		chainCode = next
	}
	private, err := crypto.ToECDSA(key.FillBytes(make([]byte, 32)))
	if err != nil {
		return nil, fmt.Errorf("derive the key: %w", err)
	}
	return private, nil
}

// split is BIP-32's use of HMAC-SHA512: the left half is a number, the right half the next chain code.
func split(key, data []byte) (*big.Int, []byte) {
	mac := hmac.New(sha512.New, key)
	mac.Write(data)
	sum := mac.Sum(nil)
	return new(big.Int).SetBytes(sum[:32]), sum[32:]
}
