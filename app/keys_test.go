package app_test

import (
	"strings"
	"testing"

	"github.com/pactwire/pactwire/app"
)

func TestRemoteSignersAndFeeLimits(t *testing.T) {
	t.Parallel()
	base := map[string]string{"database-url": "postgres://u@h/d", "rpc-url": "http://h:1"}
	with := func(more ...string) map[string]string {
		flags := map[string]string{}
		for k, v := range base {
			flags[k] = v
		}
		for i := 0; i < len(more); i += 2 {
			flags[more[i]] = more[i+1]
		}
		return flags
	}
	c := load(t, app.ModeServe, with("signer-url", "https://u:s3cret@signer:9000/s3cret", "max-fee-per-gas", "1.5gwei"))
	if k := c.Chains[0].Keys; len(k) != 1 || k[0].Remote == "" || c.Chains[0].MaxFeePerGas.String() != "1500000000" {
		t.Errorf("chain %+v", c.Chains[0])
	}
	var out strings.Builder
	if err := c.Print(&out); err != nil || strings.Contains(out.String(), "s3cret") || !strings.Contains(out.String(), `"https://signer:9000/***"`) {
		t.Errorf("printed (%v):\n%s", err, out.String())
	}
	c = load(t, app.ModeDev, map[string]string{"config": write(t, "chains: [{name: a, max-fee-per-gas: 30000000000, keys: [{remote: 'http://u:s3cret@s:1'}, {remote: 'http://s:2'}]}]")})
	if k := c.Chains[0].Keys; len(k) != 2 || k[1].Remote != "http://s:2" || c.Chains[0].MaxFeePerGas.Int64() != 30e9 {
		t.Errorf("chain %+v", c.Chains[0])
	}
	out.Reset()
	if err := c.Print(&out); err != nil || strings.Contains(out.String(), "s3cret") {
		t.Errorf("printed (%v):\n%s", err, out.String())
	}
	again := load(t, app.ModeDev, map[string]string{"config": write(t, out.String())})
	if len(again.Chains[0].Keys) != 2 || again.Chains[0].MaxFeePerGas.Int64() != 30e9 {
		t.Errorf("printed and loaded again: %+v\n%s", again.Chains, out.String())
	}
	for _, bad := range [][]string{
		{"signer-url", "ipc:/s3cret"},
		{"signer-url", "http://s:1", "max-fee-per-gas", "0"},
		{"signer-url", "http://s:1", "max-fee-per-gas", "1e9"},
		{"signer-url", "http://s:1", "max-fee-per-gas", "1.5"},
		{"signer-url", "http://s:1", "max-fee-per-gas", "-5gwei"},
	} {
		if _, err := app.Load(app.ModeServe, with(bad...), nil); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%v: %v", bad, err)
		}
	}
}
