package devnet

import (
	"context"
	"log/slog"
	"testing"
)

// StartForTest runs a chain at any free port, unless cfg names an address, until the test ends.
func StartForTest(t testing.TB, cfg ChainConfig) *Chain {
	t.Helper()
	if cfg.Listen == "" {
		cfg.Listen = "127.0.0.1:0"
	}
	chain, err := StartChain(context.Background(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := chain.Stop(); err != nil {
			t.Error(err)
		}
	})
	return chain
}
