package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/pactwire/pactwire/devnet"
)

// printWelcome tells what runs where, and what to try next.
func printWelcome(w io.Writer, url string, d *devServers) error {
	var b strings.Builder
	database := "PostgreSQL at the given URL"
	if d.postgres != nil {
		database = "private PostgreSQL, psql " + quote(d.postgres.URL(devDatabase))
	}
	fmt.Fprintf(&b, `
Pactwire is ready.

  REST API         %[1]s/api/v1
  Swagger UI       %[1]s/api
  WebSocket        ws%[2]s/ws
  Chain JSON-RPC   %[3]s and %[4]s (chain id %[5]d)
  Database         %[6]s
  Data folder      %[7]s

Funded accounts, 10000 ETH each, of the well-known development mnemonic %[8]q:
`, url, strings.TrimPrefix(url, "http"), d.chain.HTTPURL(), d.chain.WSURL(), devnet.ChainID, database, d.dir, devnet.Mnemonic)
	for i, account := range d.accounts {
		note := ""
		if i == 0 {
			note = "  (the service signs with this one; leave it alone)"
		}
		fmt.Fprintf(&b, "  %d  %s  %s%s\n", i, account.Address.Hex(), hexutil.Encode(crypto.FromECDSA(account.Key)), note)
	}
	b.WriteString("Everybody knows these keys: never use them on another chain.\n\nNext, in a second terminal:\n\n  " + nextCommand(d.chain.HTTPURL()) +
		"\n\nThen go on with the README's quick start. Ctrl-C stops everything; the next start goes on from here.\n")
	_, err := io.WriteString(w, b.String())
	return err //nolint:wrapcheck // the caller says what was printed
}

// nextCommand deploys the quick start's contract, with this very binary.
func nextCommand(rpcURL string) string {
	binary := os.Args[0]
	flag := ""
	if rpcURL != defaultRPCURL {
		flag = " --rpc-url " + rpcURL
	}
	return binary + " deploy contracts/artifacts/SimpleStorage.json" + flag
}

// quote makes one word of a text for a shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
