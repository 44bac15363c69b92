package chain

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/ethereum/go-ethereum/accounts/keystore"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
)

// Signer signs transactions. The keys never leave it.
type Signer interface {
	// Addresses are the accounts that it can sign for, in a stable order.
	Addresses() []common.Address
	// Local tells whether it signs for the address within this process, which takes no time that anybody would notice.
	Local(address common.Address) bool
	// Sign returns the transaction with the signature of address.
	Sign(ctx context.Context, address common.Address, tx *types.Transaction, chainID *big.Int) (*types.Transaction, error)
}

// ErrUnknownKey means that the signer has no key for the address.
var ErrUnknownKey = errors.New("the signer has no key for this address")

// keyring is keys in memory.
type keyring struct {
	addresses []common.Address
	keys      map[common.Address]*ecdsa.PrivateKey
}

func newKeyring(keys []*ecdsa.PrivateKey) keyring {
	r := keyring{keys: make(map[common.Address]*ecdsa.PrivateKey, len(keys))}
	for _, key := range keys {
		address := crypto.PubkeyToAddress(key.PublicKey)
		if r.keys[address] == nil {
			r.addresses = append(r.addresses, address)
		}
		r.keys[address] = key
	}
	return r
}

// Addresses implements Signer.
func (r keyring) Addresses() []common.Address { return append([]common.Address(nil), r.addresses...) }

// Local implements Signer.
func (r keyring) Local(address common.Address) bool { return r.keys[address] != nil }

// Sign implements Signer.
func (r keyring) Sign(_ context.Context, address common.Address, tx *types.Transaction, chainID *big.Int) (*types.Transaction, error) {
	key := r.keys[address]
	if key == nil {
		return nil, fmt.Errorf("sign for %s: %w", address, ErrUnknownKey)
	}
	signed, err := types.SignTx(tx, types.LatestSignerForChainID(chainID), key)
	if err != nil {
		return nil, fmt.Errorf("sign for %s: %w", address, err)
	}
	return signed, nil
}

// String keeps the keys out of logs and errors.
func (r keyring) String() string { return fmt.Sprintf("keys of %v", r.addresses) }

// GoString keeps the keys out of logs and errors.
func (r keyring) GoString() string { return r.String() }

// DevSigner signs with keys that are known in the clear: for development chains only.
type DevSigner struct{ keyring }

// NewDevSigner makes a signer of keys in memory.
func NewDevSigner(keys ...*ecdsa.PrivateKey) *DevSigner { return &DevSigner{newKeyring(keys)} }

// KeystoreSigner signs with the keys of encrypted key files as geth and others write them (Web3 Secret Storage).
type KeystoreSigner struct{ keyring }

// OpenKeystore decrypts a key file, or every key file of a folder, with the password in the first line of passwordFile.
func OpenKeystore(path, passwordFile string) (*KeystoreSigner, error) {
	password, err := os.ReadFile(passwordFile)
	if err != nil {
		return nil, fmt.Errorf("read the keystore's password file: %w", err)
	}
	line, _, _ := strings.Cut(string(password), "\n")
	line = strings.TrimSuffix(line, "\r")
	files, err := keyFiles(path)
	if err != nil {
		return nil, err
	}
	keys := make([]*ecdsa.PrivateKey, 0, len(files))
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read a key file: %w", err)
		}
		key, err := keystore.DecryptKey(content, line)
		if err != nil {
			return nil, fmt.Errorf("open key file %s: %w", file, err)
		}
		keys = append(keys, key.PrivateKey)
	}
	return &KeystoreSigner{newKeyring(keys)}, nil
}

// keyFiles returns the path itself when it is a file, and the regular, visible files in it when it is a folder.
func keyFiles(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("open the keystore: %w", err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("open the keystore: %w", err)
	}
	var files []string
	for _, e := range entries {
		if e.Type().IsRegular() && !strings.HasPrefix(e.Name(), ".") {
			files = append(files, filepath.Join(path, e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("open the keystore: there is no key file in %s", path)
	}
	sort.Strings(files)
	return files, nil
}

// errSignerUnreachable means that a remote signer gives no answer at the moment.
var errSignerUnreachable = errors.New("the signer cannot be reached")

// isUnreachable tells whether a signature is missing only for the moment.
func isUnreachable(err error) bool { return errors.Is(err, errSignerUnreachable) }
