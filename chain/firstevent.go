package chain

import (
	"context"
	"strconv"

	pactwire "github.com/pactwire/pactwire"
)

// ResolveFirstEvent turns a listener's firstEvent into the first block that it hears: oldest is block 0, newest and latest (and nothing) the first block after the
// chain's head, and a decimal number itself. canonical is what is kept and shown.
func ResolveFirstEvent(ctx context.Context, client *Client, firstEvent string) (block int64, canonical string, err error) {
	switch firstEvent {
	case "oldest":
		return 0, firstEvent, nil
	case "", "newest", "latest":
		head, err := client.Head(ctx)
		if err != nil {
			return 0, "", err
		}
		if firstEvent == "" {
			firstEvent = "newest"
		}
		return int64(head.Number) + 1, firstEvent, nil //nolint:gosec // no chain reaches 2^63 blocks
	}
	for _, c := range firstEvent {
		if c < '0' || c > '9' {
			return 0, "", pactwire.Invalid("options.firstEvent", "must be oldest, newest, latest or a block number, not %q", firstEvent)
		}
	}
	block, err = strconv.ParseInt(firstEvent, 10, 62)
	if err != nil {
		return 0, "", pactwire.Invalid("options.firstEvent", "block %s is higher than any block can be", firstEvent)
	}
	return block, strconv.FormatInt(block, 10), nil
}
