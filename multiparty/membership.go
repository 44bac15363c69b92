package multiparty

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/common"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/chain"
	"github.com/pactwire/pactwire/contract"
	"github.com/pactwire/pactwire/store"
)

// MemberRequest is one change of the members that this node asks the pin contract for.
type MemberRequest struct {
	Key            common.Address // who signs: the admin, or the member itself; this node's account when zero
	IdempotencyKey string         // empty: none
}

// AddMember asks the pin contract to register a member. Only its admin may.
func (n *Network) AddMember(ctx context.Context, r MemberRequest, account common.Address, name, url string) (store.Operation, error) {
	if !contract.ValidName(name) {
		return store.Operation{}, pactwire.Invalid("name", "must be 1 to 64 letters, digits, dots, dashes or underscores, with a letter or digit at both ends")
	}
	return n.changeMembers(ctx, r, "addMember", map[string]string{"account": store.Account(account.Bytes()), "name": name, "url": url}, account, name, url)
}

// RemoveMember asks the pin contract to remove a member. Only its admin may.
func (n *Network) RemoveMember(ctx context.Context, r MemberRequest, account common.Address) (store.Operation, error) {
	return n.changeMembers(ctx, r, "removeMember", map[string]string{"account": store.Account(account.Bytes())}, account)
}

// UpdateSelf tells the network this member's new URL.
func (n *Network) UpdateSelf(ctx context.Context, r MemberRequest, url string) (store.Operation, error) {
	return n.changeMembers(ctx, r, "updateMember", map[string]string{"url": url}, url)
}

// RotateSelf moves this member to another account. Whatever is still to be pinned with the old one would be refused, so there must be nothing.
func (n *Network) RotateSelf(ctx context.Context, r MemberRequest, account common.Address) (store.Operation, error) {
	waiting, err := n.db.BatchesInFlight(ctx, n.cfg.Namespace)
	if err != nil {
		return store.Operation{}, err //nolint:wrapcheck // it says what it did
	}
	if waiting > 0 {
		return store.Operation{}, pactwire.Conflict("broadcasts_under_way", "Broadcasts of this member are on their way with its present key; try again when they are confirmed.")
	}
	return n.changeMembers(ctx, r, "rotateMember", map[string]string{"account": store.Account(account.Bytes())}, account)
}

// changeMembers sends a transaction to the pin contract through the ordinary submitter.
func (n *Network) changeMembers(ctx context.Context, r MemberRequest, method string, input map[string]string, args ...any) (store.Operation, error) {
	none := store.Operation{}
	if r.Key == (common.Address{}) {
		r.Key = n.cfg.Key
	}
	data, err := n.abi.Pack(method, args...)
	if err != nil {
		return none, fmt.Errorf("encode %s: %w", method, err)
	}
	text, err := json.Marshal(map[string]any{
		"type": "network", "method": method, "input": input, "key": store.Account(r.Key.Bytes()),
		"location": map[string]string{"address": store.Account(n.cfg.PinContract.Bytes())},
	})
	if err != nil {
		return none, fmt.Errorf("describe %s: %w", method, err)
	}
	op := store.NewOperation{
		Namespace: n.cfg.Namespace, Type: store.OpInvoke, Chain: n.cfg.Chain, Key: r.Key, To: &n.cfg.PinContract, Data: data, Input: text, Errors: n.errors,
		IdempotencyKey: r.IdempotencyKey,
	}
	if r.IdempotencyKey != "" {
		hash := sha256.Sum256(append(r.Key.Bytes(), data...))
		op.BodyHash = hash[:]
		// A repeat must not be estimated anew: the first one may have taken effect.
		if known, existed, err := n.db.RepeatedOperation(ctx, op); existed || err != nil {
			return known, err //nolint:wrapcheck // it speaks to the caller
		}
	}
	op.Gas, err = n.client.EstimateGas(ctx, chain.CallRequest{From: &r.Key, To: n.cfg.PinContract, Data: data})
	var revert *chain.RevertError
	if errors.As(err, &revert) {
		return none, n.refused(revert, r.Key)
	}
	if err != nil {
		return none, fmt.Errorf("estimate %s: %w", method, err)
	}
	created, _, err := n.db.CreateOperation(ctx, op)
	return created, err //nolint:wrapcheck // it says what it did
}

// refused words why the pin contract refuses a change of the members.
func (n *Network) refused(revert *chain.RevertError, key common.Address) error {
	decoded := contract.DecodeRevert(revert.Data, n.errors)
	name := ""
	if decoded != nil {
		name = decoded.Name
	}
	account := store.Account(key.Bytes())
	switch name {
	case "NotAdmin":
		return pactwire.Errorf(pactwire.KindForbidden, "not_admin", "The account %s is not the admin of the network; only the admin adds and removes members.", account)
	case "NotMember":
		return pactwire.Conflict("not_a_member", "The account is not a member of the network.")
	case "AlreadyMember":
		return pactwire.Conflict("already_a_member", "The account is a member of the network already.")
	case "NameTaken":
		return pactwire.Conflict("member_name_taken", "Another member of the network has this name.")
	}
	return &pactwire.Error{Kind: pactwire.KindReverted, Code: "reverted", Message: "The pin contract refuses the change.", Revert: decoded, Err: revert}
}

// knownMember is how long it is not asked again whether this node is a member. The pin contract has the last word anyway.
const knownMember = time.Second

// requireMember refuses to broadcast for an account that the network would not hear. What the chain's log says may be behind, so that its contract is
// asked as well before somebody is refused.
func (n *Network) requireMember(ctx context.Context) error {
	if time.Now().UnixNano() < n.memberUntil.Load() {
		return nil
	}
	_, err := n.db.Member(ctx, n.cfg.Namespace, n.cfg.Key.Bytes())
	if err == nil {
		n.memberUntil.Store(time.Now().Add(knownMember).UnixNano())
		return nil
	}
	if pactwire.KindOf(err) != pactwire.KindNotFound {
		return err //nolint:wrapcheck // it says what it did
	}
	member, err := n.isMember(ctx, n.cfg.Key)
	if err != nil || member {
		return err
	}
	return pactwire.Conflict("not_a_member", "The account %s of this node is not a member of the network, so that nobody would accept its broadcasts. "+
		"The network's admin adds it with: pactwire member add %s NAME", n.author, n.author)
}

func (n *Network) isMember(ctx context.Context, account common.Address) (bool, error) {
	data, err := n.abi.Pack("isMember", account)
	if err != nil {
		return false, fmt.Errorf("encode the question for a member: %w", err)
	}
	answer, err := n.client.Call(ctx, chain.CallRequest{To: n.cfg.PinContract, Data: data})
	if err != nil {
		return false, fmt.Errorf("ask the pin contract for member %s: %w", account, err)
	}
	return new(big.Int).SetBytes(answer).Sign() != 0, nil
}

// PinContract is the address of the pin contract.
func (n *Network) PinContract() common.Address { return n.cfg.PinContract }
