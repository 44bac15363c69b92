package contract_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/crypto"

	"github.com/pactwire/pactwire/contract"
)

func TestDecodeRevert(t *testing.T) {
	iface, err := contract.FromABI(json.RawMessage(`[
		{"type":"error","name":"Insufficient","inputs":[{"name":"available","type":"uint256"},{"name":"","type":"string"}]},
		{"type":"error","name":"Paused","inputs":[]}]`))
	if err != nil {
		t.Fatal(err)
	}
	selector := func(signature string) string { return string(crypto.Keccak256([]byte(signature))[:4]) }
	text := func(s string) string {
		return string(unhex(t, word(32)+word(byte(len(s))))) + s + strings.Repeat("\x00", 32-len(s)%32)
	}
	tests := []struct{ data, name, args, reason string }{
		{"", "", "", "the contract reverted without a reason"},
		{"\x01", "", "", "the contract reverted with data that the interface does not describe"},
		{"\x08\xc3\x79\xa0" + text("not\nyours"), "Error", `{"message":"not\nyours"}`, "not yours"},
		{"\x08\xc3\x79\xa0" + text(""), "Error", `{"message":""}`, "the contract reverted with an empty reason"},
		{"\x08\xc3\x79\xa0" + text("\xff\x00"), "Error", `{"message":"` + "\ufffd\ufffd" + `"}`, "\ufffd\ufffd"},
		{"\x08\xc3\x79\xa0\x01", "", "", "the contract reverted with data that the interface does not describe"},
		{"\x4e\x48\x7b\x71" + string(unhex(t, word(0x11))), "Panic", `{"code":"17"}`, "arithmetic overflow or underflow (panic 0x11)"},
		{"\x4e\x48\x7b\x71" + string(unhex(t, word(0x99))), "Panic", `{"code":"153"}`, "panic with the unknown code 0x99"},
		{"\x4e\x48\x7b\x71" + strings.Repeat("\xff", 32), "Panic", `{"code":"115792089237316195423570985008687907853269984665640564039457584007913129639935"}`, "panic with an unknown code"},
		{"\x4e\x48\x7b\x71", "", "", "the contract reverted with data that the interface does not describe"},
		{selector("Paused()"), "Paused", `{}`, "Paused()"},
		{
			selector("Insufficient(uint256,string)") + string(unhex(t, word(5)+word(64)+word(2)+"6869"+strings.Repeat("00", 30))),
			"Insufficient", `{"available":"5","1":"hi"}`, `Insufficient(available: 5, "hi")`,
		},
		{selector("Insufficient(uint256,string)") + "x", "", "", "the contract reverted with data that the interface does not describe"},
		{"\x08\xc3\x79\xa0" + text(strings.Repeat("x", 200)), "Error", `{"message":"` + strings.Repeat("x", 200) + `"}`, strings.Repeat("x", 200)},
	}
	table, err := contract.NewErrorTable(iface.Errors)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range tests {
		got := table.Decode([]byte(test.data))
		args, _ := got.Args.(json.RawMessage)
		if got.Name != test.name || string(args) != test.args || got.Reason != test.reason {
			t.Errorf("%x is %q %s %q, want %q %s %q", test.data, got.Name, args, got.Reason, test.name, test.args, test.reason)
		}
		if again := contract.DecodeRevert([]byte(test.data), append(iface.Errors, contract.Error{Name: "0bad"})); again.Reason != got.Reason {
			t.Errorf("DecodeRevert says %q, the table %q", again.Reason, got.Reason)
		}
	}
	var none *contract.ErrorTable
	if got := none.Decode([]byte(selector("Paused()"))); got.Data != "0x9e87fac8" || got.Name != "" {
		t.Errorf("without a table: %+v", got)
	}
}

func TestPanicsAreSaidInWords(t *testing.T) {
	for code, want := range map[byte]string{
		0x00: "generic", 0x01: "assertion", 0x11: "overflow", 0x12: "division", 0x21: "enum", 0x22: "storage", 0x31: "pop",
		0x32: "index", 0x41: "memory", 0x51: "uninitialised",
	} {
		got := contract.DecodeRevert(append([]byte{0x4e, 0x48, 0x7b, 0x71}, unhex(t, word(code))...), nil)
		if got.Signature != "Panic(uint256)" || !strings.Contains(got.Reason, want) {
			t.Errorf("panic %#x is %q", code, got.Reason)
		}
	}
}
