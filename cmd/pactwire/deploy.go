package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/pactwire/pactwire/contract"
)

const defaultRPCURL = "http://127.0.0.1:8545"

// deployment is what `deploy --json` prints.
type deployment struct {
	Contract        string `json:"contract,omitempty"`
	Address         string `json:"address"`
	TransactionHash string `json:"transactionHash"`
	BlockNumber     string `json:"blockNumber"`
	GasUsed         string `json:"gasUsed"`
	From            string `json:"from"`
	ChainID         string `json:"chainId"`
}

func newDeploy() *cobra.Command {
	var rpcURL, key, name string
	var asJSON bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "deploy ARTIFACT [ARGUMENT...]",
		Short: "Deploy a compiled contract to a development chain",
		Long: "Deploy a compiled contract, for local development. ARTIFACT is a file of Hardhat or Foundry, or what solc printed with --combined-json abi,bin or\n" +
			"--standard-json. The arguments are the constructor's, in order: plain text, and JSON for arrays and tuples;\n" +
			"those that begin with a dash go behind --.\n\n" +
			"It signs with one of the dev chain's funded accounts and prints the contract's address. Account 0 belongs to the service, which counts its nonces\n" +
			"itself, and is refused.",
		Example: "  pactwire deploy contracts/artifacts/SimpleStorage.json\n" +
			"  pactwire deploy out/Token.sol/Token.json \"My token\" 1000000 --json",
		Args: usage(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeoutCause(cmd.Context(), timeout, fmt.Errorf("it took longer than %s", timeout))
			defer cancel()
			signer, err := deployKey(key)
			if err != nil {
				return usageError{err}
			}
			a, err := readArtifact(args[0], name)
			if err != nil {
				return err
			}
			encoded, err := contract.EncodeConstructorStrings(a.abi, args[1:])
			if err != nil {
				return fmt.Errorf("constructor arguments: %w", err)
			}
			d, err := deploy(ctx, cmp.Or(rpcURL, os.Getenv("PACTWIRE_RPC_URL"), defaultRPCURL), signer, a, append(a.bytecode, encoded...))
			if errors.Is(err, context.DeadlineExceeded) {
				err = fmt.Errorf("deploy: %w", context.Cause(ctx))
			}
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd, d)
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), d.Address)
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&rpcURL, "rpc-url", "", "the chain's JSON-RPC `URL` (PACTWIRE_RPC_URL; default "+defaultRPCURL+")")
	flags.StringVar(&key, "key", "1", "who signs: the `index` of a dev account, 1 to 9, or a private key in hex")
	flags.StringVar(&name, "contract", "", "`name` of the contract, where the file holds several")
	flags.BoolVar(&asJSON, "json", false, "print the address, the transaction and more as JSON")
	flags.DurationVar(&timeout, "timeout", time.Minute, "longest time to wait for the transaction")
	return cmd
}
