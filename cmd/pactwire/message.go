package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/pactwire/pactwire/gen"
	"github.com/pactwire/pactwire/multiparty"
	"github.com/pactwire/pactwire/sharedstorage"
	"github.com/pactwire/pactwire/sharedstorage/configured"
)

func newMessage() *cobra.Command {
	r := &remote{}
	cmd := &cobra.Command{
		Use: "message", Short: "Verify what members of a network tell one another", Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	r.flags(cmd)
	cmd.AddCommand(messageVerify(r))
	return cmd
}

// verification is what `message verify` asks besides the service.
type verification struct {
	rpcURL, pinContract, storage string
	timeout                      time.Duration
}

func messageVerify(r *remote) *cobra.Command {
	var v verification
	cmd := &cobra.Command{
		Use: "verify ID", Short: "Recompute every hash of a message against the chain", Args: usage(cobra.ExactArgs(1)),
		Long: "Recompute every hash of a message, and compare with what is pinned on the chain. The message comes from the service; everything that it says is checked\n" +
			"against the chain's node. To trust nobody, name a node and the pin contract's address that you know to be right. docs/hashing.md tells how the\n" +
			"hashes are made.",
		Example: "  pactwire message verify 01a1fe4c-5386-71d3-9490-72ecfe34254c --rpc-url http://127.0.0.1:8545 --pin-contract 0x…",
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := uuid.Parse(args[0])
			if err != nil {
				return usageError{fmt.Errorf("%q is no message id", args[0])}
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), v.timeout)
			defer cancel()
			return v.run(ctx, r, id, cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&v.rpcURL, "rpc-url", "", "the chain's JSON-RPC `URL` (PACTWIRE_RPC_URL; default "+defaultRPCURL+")")
	flags.StringVar(&v.pinContract, "pin-contract", "", "the pin contract's `address`; without it the service's word is taken")
	flags.StringVar(&v.storage, "shared-storage", "chain", "where payloads are, if not on the chain: `address` dir:///path or ipfs://host:port")
	flags.DurationVar(&v.timeout, "timeout", time.Minute, "longest time that it may take")
	return cmd
}

func (v *verification) run(ctx context.Context, r *remote, id uuid.UUID, out io.Writer) error {
	client, err := r.client()
	if err != nil {
		return err
	}
	yes := true
	answer, err := client.GetMessageWithResponse(ctx, r.namespace, id, &gen.GetMessageParams{Data: &yes})
	if err != nil {
		return fmt.Errorf("get the message: %w", err)
	}
	if answer.JSON200 == nil {
		return answerError(answer.Status(), answer.Body)
	}
	claim, err := multiparty.ReadClaim(answer.Body)
	if err != nil {
		return err
	}
	checks, err := claim.Hashes()
	if err != nil {
		return err
	}
	verdict := &verdict{out: out}
	verdict.print(fmt.Sprintf("Message %s, %s", id, claim.State), checks)
	if claim.Pin == nil {
		verdict.note("The network's order has not decided it yet: there is nothing on the chain to compare with.")
		return verdict.conclude(false)
	}
	if err := v.onChain(ctx, claim, verdict); err != nil {
		return err
	}
	return verdict.conclude(true)
}

// onChain compares with the chain.
func (v *verification) onChain(ctx context.Context, claim *multiparty.Claim, verdict *verdict) error {
	node, err := ethclient.DialContext(ctx, cmp.Or(v.rpcURL, os.Getenv("PACTWIRE_RPC_URL"), defaultRPCURL))
	if err != nil {
		return fmt.Errorf("connect to the chain: %w", err)
	}
	defer node.Close()
	receipt, err := node.TransactionReceipt(ctx, common.HexToHash(claim.Pin.TransactionHash))
	if errors.Is(err, ethereum.NotFound) {
		return fmt.Errorf("the chain has no transaction %s", claim.Pin.TransactionHash)
	}
	if err != nil {
		return fmt.Errorf("read the pin's transaction: %w", err)
	}
	contract := common.HexToAddress(cmp.Or(v.pinContract, claim.Pin.Contract))
	var logs []multiparty.PinLog
	for _, log := range receipt.Logs {
		if log.Address == contract {
			logs = append(logs, pinLog(*log))
		}
	}
	on, checks, err := claim.FindPin(logs)
	if err != nil {
		return err
	}
	verdict.print(fmt.Sprintf("Pinned in block %s by transaction %s, at contract %s", receipt.BlockNumber, receipt.TxHash, contract), checks)
	packed, err := v.payload(ctx, node, contract, receipt.BlockNumber, claim, on)
	if err != nil {
		return err
	}
	if checks, err = claim.Payload(packed, on); err != nil {
		return err
	}
	where := "in the pin itself"
	if on.Location != "" {
		where = "at " + on.Location
	}
	verdict.print("The batch's payload, "+where, checks)
	return nil
}

// chunkBlocks is how far before its pin a batch's chunks are looked for.
const chunkBlocks = 1000

// payload gets the batch's payload from where the pin says that it is.
func (v *verification) payload(ctx context.Context, node *ethclient.Client, contract common.Address, block *big.Int, claim *multiparty.Claim, on *multiparty.OnChain) ([]byte, error) {
	storage, err := configured.Open(strings.Split(v.storage, ","))
	if err != nil {
		return nil, usageError{err}
	}
	placement := sharedstorage.Placement{Location: on.Location}
	switch {
	case on.Location == "":
		placement.Payload = on.Payload
	case multiparty.InChunks(on.Location):
		query := ethereum.FilterQuery{
			Addresses: []common.Address{contract}, ToBlock: block,
			FromBlock: new(big.Int).SetUint64(max(block.Uint64(), chunkBlocks) - chunkBlocks),
		}
		for _, topic := range claim.ChunkQuery() {
			query.Topics = append(query.Topics, []common.Hash{topic})
		}
		found, err := node.FilterLogs(ctx, query)
		if err != nil {
			return nil, fmt.Errorf("read the batch's chunks: %w", err)
		}
		logs := make([]multiparty.PinLog, len(found))
		for i := range found {
			logs[i] = pinLog(found[i])
		}
		if placement.Chunks, err = claim.JoinChunks(logs); err != nil {
			return nil, fmt.Errorf("read the batch's chunks: %w", err)
		}
	}
	packed, err := storage.Get(ctx, *claim.Batch, placement)
	if err != nil {
		return nil, fmt.Errorf("get the batch's payload (see --shared-storage): %w", err)
	}
	return packed, nil
}

func pinLog(log types.Log) multiparty.PinLog {
	return multiparty.PinLog{Topics: log.Topics, Data: log.Data}
}

// verdict prints checks, and knows whether one failed.
type verdict struct {
	out    io.Writer
	failed int
}

func (v *verdict) print(title string, checks []multiparty.Check) {
	fmt.Fprintln(v.out, title)
	for _, c := range checks {
		mark := "ok   "
		if !c.OK {
			mark = "WRONG"
			v.failed++
		}
		fmt.Fprintf(v.out, "  %s  %-45s %s\n", mark, c.What, c.Note)
	}
}

func (v *verdict) note(text string) { fmt.Fprintln(v.out, text) }

// conclude is an error when something is wrong.
func (v *verdict) conclude(pinned bool) error {
	if v.failed > 0 {
		return fmt.Errorf("the message is not what it claims to be: %d of the checks failed", v.failed)
	}
	if pinned {
		v.note("The message is authentic: its author pinned exactly this.")
	}
	return nil
}
