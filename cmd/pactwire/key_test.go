package main

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/crypto"

	"github.com/pactwire/pactwire/chain"
)

func TestKeys(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	folder, password, file := filepath.Join(dir, "keys"), filepath.Join(dir, "password"), filepath.Join(dir, "plain")
	key, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	plain := hex.EncodeToString(crypto.FromECDSA(key))
	for name, text := range map[string]string{password: "s3cret words\n", file: "0x" + plain + "\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	flags := []string{"--keystore", folder, "--password-file", password}
	imported := run(t, append([]string{"key", "import", file}, flags...)...)
	address := crypto.PubkeyToAddress(key.PublicKey).Hex()
	if imported.code != 0 || strings.TrimSpace(imported.out) != address {
		t.Fatalf("import: %+v", imported)
	}
	made := run(t, append([]string{"key", "new"}, flags...)...)
	if made.code != 0 || len(strings.TrimSpace(made.out)) != 42 {
		t.Fatalf("new: %+v", made)
	}
	listed := run(t, "key", "list", "--keystore", folder)
	if listed.code != 0 || !strings.Contains(listed.out, address) || !strings.Contains(listed.out, strings.TrimSpace(made.out)) {
		t.Fatalf("list: %+v", listed)
	}
	again := run(t, append([]string{"key", "import", file}, flags...)...)
	if again.code == 0 || !strings.Contains(again.err, "already") {
		t.Errorf("import again: %+v", again)
	}
	if asked := run(t, "key", "new", "--keystore", folder); asked.code == 0 || !strings.Contains(asked.err, "--password-file") {
		t.Errorf("new without a password: %+v", asked)
	}
	bad := filepath.Join(dir, "bad")
	if err := os.WriteFile(bad, []byte(plain[:60]), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := run(t, append([]string{"key", "import", bad}, flags...)...); r.code == 0 || strings.Contains(r.err+r.out, plain[:60]) {
		t.Errorf("import of half a key: %+v", r)
	}
	opened, err := chain.OpenKeystore(folder, password)
	if err != nil || len(opened.Addresses()) != 2 {
		t.Fatalf("the service opens %v, %v", opened, err)
	}
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		info, err := f.Info()
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has the mode %v, %v", f.Name(), info.Mode(), err)
		}
		text, err := os.ReadFile(filepath.Join(folder, f.Name()))
		if err != nil || strings.Contains(string(text), plain) || !strings.Contains(string(text), `"scrypt"`) {
			t.Errorf("%s holds the key, or is not encrypted with scrypt: %v", f.Name(), err)
		}
	}
}
