package multiparty

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/pactwire/pactwire/store"
)

// A batch whose payload cannot be had holds up what depends on it, and nothing else. Two logs of the pin contract depend on one another when they have a
// context in common; such logs are applied in chain order by every member. The contexts of a batch are
//
//   - the account of its author, so that each member's broadcasts stay in order;
//   - each topic of its messages, so that each topic is in the same order everywhere;
//   - "definitions", when it defines an interface or an API: those depend on one another by names and ids;
//   - the id of each of its messages, for no id is used twice.
//
// A change of a member has the contexts of the accounts that it is about; a rotation hands definitions over as well. Where the payload is not on the chain, the
// pin carries the contexts in its place: 8 bytes each, sorted. They are checked against the payload when it comes.

const (
	contextSize = 8
	maxContexts = 2000 // more of them are said as "everything"
)

func contextOf(kind, name string) []byte {
	return sum([]byte(kind + ":" + name))[:contextSize]
}

func accountContext(account common.Address) []byte {
	return contextOf("account", store.Account(account.Bytes()))
}

var definitionsContext = contextOf("definitions", "")

// declaredContexts are the contexts of messages without their author's.
func declaredContexts(messages []store.Message) [][]byte {
	seen := map[[contextSize]byte]bool{}
	add := func(context []byte) { seen[[contextSize]byte(context)] = true }
	for i := range messages {
		m := &messages[i]
		add(contextOf("message", m.ID.String()))
		for _, topic := range m.Topics {
			add(contextOf("topic", topic))
		}
		if m.Tag == store.TagDefineInterface || m.Tag == store.TagDefineAPI {
			add(definitionsContext)
		}
	}
	if len(seen) > maxContexts {
		return [][]byte{store.EveryContext}
	}
	contexts := make([][]byte, 0, len(seen))
	for context := range seen {
		contexts = append(contexts, context[:])
	}
	slices.SortFunc(contexts, bytes.Compare)
	return contexts
}

// batchContexts are the contexts of a verified batch without its author's.
func batchContexts(b *store.PinnedBatch) [][]byte {
	messages := make([]store.Message, len(b.Messages))
	for i := range b.Messages {
		messages[i] = b.Messages[i].Message
	}
	return declaredContexts(messages)
}

// readContexts reads what a pin carries in place of its payload.
func readContexts(carried []byte) ([][]byte, error) {
	if len(carried) == 0 || len(carried)%contextSize != 0 || len(carried) > maxContexts*contextSize {
		return nil, fmt.Errorf("%w: %d bytes of contexts", errBatch, len(carried))
	}
	var contexts [][]byte
	for context := range slices.Chunk(carried, contextSize) {
		if n := len(contexts); n > 0 && bytes.Compare(contexts[n-1], context) >= 0 {
			return nil, fmt.Errorf("%w: its contexts are not sorted", errBatch)
		}
		contexts = append(contexts, context)
	}
	return contexts, nil
}

// memberContexts are the contexts of a change of the members.
func memberContexts(change *store.MemberChange) [][]byte {
	account := func(a []byte) []byte { return accountContext(common.BytesToAddress(a)) }
	switch {
	case change.Set != nil:
		return [][]byte{account(change.Set)}
	case change.From != nil:
		return [][]byte{account(change.From), account(change.To), definitionsContext}
	default:
		return [][]byte{account(change.Removed)}
	}
}

// sameContexts tells whether a batch has the contexts that its pin carries.
func sameContexts(declared, actual [][]byte) bool {
	return slices.EqualFunc(declared, actual, bytes.Equal)
}
