package chain

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/accounts/keystore"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/uuid"
)

func TestSignersSignAndKeepTheirKeys(t *testing.T) {
	key, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	address := crypto.PubkeyToAddress(key.PublicKey)
	dir := t.TempDir()
	text, err := keystore.EncryptKey(&keystore.Key{Id: uuid.New(), Address: address, PrivateKey: key}, "pass word", keystore.LightScryptN, keystore.LightScryptP)
	if err != nil {
		t.Fatal(err)
	}
	file, password, wrong := filepath.Join(dir, "keys", "UTC--key"), filepath.Join(dir, "password"), filepath.Join(dir, "wrong")
	for name, content := range map[string]string{file: string(text), filepath.Join(dir, "keys", ".hidden"): "x", password: "pass word\r\n", wrong: "no"} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	folder, err := OpenKeystore(filepath.Dir(file), password)
	if err != nil {
		t.Fatal(err)
	}
	single, err := OpenKeystore(file, password)
	if err != nil {
		t.Fatal(err)
	}
	secret := hex.EncodeToString(crypto.FromECDSA(key))
	for _, s := range []Signer{NewDevSigner(key, key), folder, single} {
		if got := s.Addresses(); len(got) != 1 || got[0] != address {
			t.Fatalf("addresses %v", got)
		}
		tx, err := s.Sign(context.Background(), address, types.NewTx(&types.DynamicFeeTx{ChainID: big.NewInt(5), Gas: 21_000}), big.NewInt(5))
		if err != nil {
			t.Fatal(err)
		}
		if from, err := types.Sender(types.LatestSignerForChainID(big.NewInt(5)), tx); err != nil || from != address {
			t.Fatalf("signed by %s, %v", from, err)
		}
		if _, err := s.Sign(context.Background(), common.Address{1}, tx, big.NewInt(5)); !errors.Is(err, ErrUnknownKey) {
			t.Fatalf("an unknown key: %v", err)
		}
		for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
			//lint:ignore SA1019 the raw number is how the printer would show it
			if out := fmt.Sprintf(verb, s); strings.Contains(out, secret) || strings.Contains(out, key.D.String()) {
				t.Fatalf("%s shows the key", verb)
			}
		}
	}
	for _, c := range [][2]string{{file, wrong}, {file, filepath.Join(dir, "none")}, {filepath.Join(dir, "none"), password}, {t.TempDir(), password}} {
		if _, err := OpenKeystore(c[0], c[1]); err == nil || strings.Contains(err.Error(), "pass word") {
			t.Errorf("%v: %v", c, err)
		}
	}
}
