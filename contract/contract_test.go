package contract_test

import (
	"encoding/hex"
	"encoding/json"
	"testing"

	"github.com/pactwire/pactwire/contract"
)

const simpleABI = `[
 {"type":"constructor","inputs":[{"name":"start","type":"uint256"}]},
 {"type":"function","name":"set","inputs":[{"name":"x","type":"uint256","internalType":"uint256"}],"outputs":[],"stateMutability":"nonpayable"},
 {"type":"function","name":"get","inputs":[],"outputs":[{"name":"","type":"uint256"}],"stateMutability":"view"},
 {"type":"event","name":"Changed","inputs":[{"name":"from","type":"address","indexed":true},{"name":"value","type":"uint256","indexed":false}],"anonymous":false}
]`

func compileABI(t testing.TB, abi string) *contract.Compiled {
	t.Helper()
	iface, err := contract.FromABI(json.RawMessage(abi))
	if err != nil {
		t.Fatalf("read ABI: %v", err)
	}
	c, err := contract.Compile(iface)
	if err != nil {
		t.Fatalf("compile: %v", err)
	}
	return c
}

func TestSimpleContract(t *testing.T) {
	c := compileABI(t, simpleABI)
	set, err := c.Method("set")
	if err != nil {
		t.Fatal(err)
	}
	data, err := set.Encode(json.RawMessage(`{"x": 258}`))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := hex.EncodeToString(data), "60fe47b10000000000000000000000000000000000000000000000000000000000000102"; got != want {
		t.Errorf("set(258) = %s, want %s", got, want)
	}
	get, err := c.Method("get()")
	if err != nil {
		t.Fatal(err)
	}
	out, err := get.DecodeOutput(data[4:])
	if err != nil {
		t.Fatal(err)
	}
	if string(out) != `{"output":"258"}` {
		t.Errorf("get() = %s", out)
	}
}
