package multiparty

import (
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"github.com/pactwire/pactwire/store"
)

// readMemberChange decodes a log about members; nil when it is another log. A name that somebody registered may hold any bytes.
func readMemberChange(pin *store.Pin) (*store.MemberChange, error) {
	account := func(i int) []byte { return common.BytesToAddress(pin.Topics[i]).Bytes() }
	switch {
	case len(pin.Topics) == 2 && common.BytesToHash(pin.Topics[0]) == topicOf("MemberSet"):
		var log struct{ Name, Url string } //nolint:revive // the names that package abi derives from the contract's
		if err := pinABI().UnpackIntoInterface(&log, "MemberSet", pin.Data); err != nil {
			return nil, fmt.Errorf("%w: %w", errLog, err)
		}
		return &store.MemberChange{Set: account(1), Name: printable(log.Name, 256), URL: printable(log.Url, 2048)}, nil
	case len(pin.Topics) == 3 && common.BytesToHash(pin.Topics[0]) == topicOf("MemberRotated"):
		return &store.MemberChange{From: account(1), To: account(2)}, nil
	case len(pin.Topics) == 2 && common.BytesToHash(pin.Topics[0]) == topicOf("MemberRemoved"):
		return &store.MemberChange{Removed: account(1)}, nil
	}
	return nil, nil //nolint:nilnil // no change is no error
}
