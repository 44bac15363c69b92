package contract_test

import (
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"pgregory.net/rapid"

	"github.com/pactwire/pactwire/contract"
)

func TestAddressNotations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := common.BytesToAddress(rapid.SliceOfN(rapid.Byte(), 20, 20).Draw(t, "address"))
		mixed := want.Hex()
		for _, s := range []string{mixed, mixed[2:], strings.ToLower(mixed), strings.ToUpper(mixed), strings.ToUpper(mixed[2:])} {
			if got, err := contract.ParseAddress(s); err != nil || got != want {
				t.Fatalf("%s is %s, %v", s, got, err)
			}
		}
		if got := contract.FormatAddress(want); got != strings.ToLower(mixed) {
			t.Fatalf("formatted as %s", got)
		}

		// One letter in the other case is a wrong checksum, unless it leaves no mixture.
		at := rapid.IntRange(2, 41).Draw(t, "at")
		flipped := []byte(mixed)
		flipped[at] ^= 0x20
		body := string(flipped[2:])
		if mixed[at] < 'A' || strings.ToLower(body) == body || strings.ToUpper(body) == body {
			return
		}
		if _, err := contract.ParseAddress(string(flipped)); err == nil || !strings.Contains(err.Error(), "checksum") {
			t.Fatalf("%s: %v", flipped, err)
		}
	})
}

func TestAddressRefusals(t *testing.T) {
	for _, s := range []string{
		"", "0x", "0x5fbdb2315678afecb367f032d93f642f64180a", "0x5fbdb2315678afecb367f032d93f642f64180aa3a3",
		"0x5fbdb2315678afecb367f032d93f642f64180aag", " 0x5fbdb2315678afecb367f032d93f642f64180aa3",
		"0x0x5fbdb2315678afecb367f032d93f642f64180a", strings.Repeat("0", 1<<20),
	} {
		if a, err := contract.ParseAddress(s); err == nil {
			t.Errorf("%.50q is %s", s, a)
		}
	}
}
