package handlers

import (
	"context"
	"fmt"
	"net/url"

	"github.com/ethereum/go-ethereum/common"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/contract"
	"github.com/pactwire/pactwire/gen"
	"github.com/pactwire/pactwire/multiparty"
	"github.com/pactwire/pactwire/store"
)

// ListMembers lists the members of the network.
func (s *Server) ListMembers(ctx context.Context, r gen.ListMembersRequestObject) (gen.ListMembersResponseObject, error) {
	ns, err := s.namespace(r.Namespace)
	if err != nil {
		return nil, err
	}
	members, err := s.db.Members(ctx, ns.Name)
	if err != nil {
		return nil, fmt.Errorf("list the members: %w", err)
	}
	out := make(gen.ListMembers200JSONResponse, 0, len(members))
	for _, m := range members {
		out = append(out, toMember(m, ns))
	}
	return out, nil
}

// GetMember returns a member by its account or its name.
func (s *Server) GetMember(ctx context.Context, r gen.GetMemberRequestObject) (gen.GetMemberResponseObject, error) {
	ns, err := s.namespace(r.Namespace)
	if err != nil {
		return nil, err
	}
	m, err := s.member(ctx, ns, r.Account)
	return gen.GetMember200JSONResponse(toMember(m, ns)), err
}

func (s *Server) member(ctx context.Context, ns *Namespace, accountOrName string) (store.Member, error) {
	var m store.Member
	var err error
	if account, bad := contract.ParseAddress(accountOrName); bad == nil {
		m, err = s.db.Member(ctx, ns.Name, account.Bytes())
	} else {
		m, err = s.db.MemberByName(ctx, ns.Name, accountOrName)
	}
	if err != nil {
		return m, fmt.Errorf("find a member: %w", err)
	}
	return m, nil
}

// AddMember registers a member with the network's pin contract.
func (s *Server) AddMember(ctx context.Context, r gen.AddMemberRequestObject) (gen.AddMemberResponseObject, error) {
	ns, request, err := s.memberRequest(r.Namespace, r.Body.Key, idempotencyKey{r.Params.IdempotencyKey, r.Body.IdempotencyKey})
	if err != nil {
		return nil, err
	}
	account, err := contract.ParseAddress(r.Body.Account)
	if err != nil {
		return nil, pactwire.Invalid("account", "%s", err.Error())
	}
	if err := checkURL(value(r.Body.URL)); err != nil {
		return nil, err
	}
	op, err := ns.Network.AddMember(ctx, request, account, r.Body.Name, value(r.Body.URL))
	if op, err = s.outcome(ctx, op, err, r.Params.Confirm); err != nil {
		return nil, fmt.Errorf("add a member: %w", err)
	}
	if value(r.Params.Confirm) {
		return gen.AddMember200JSONResponse{InvokedJSONResponse: gen.InvokedJSONResponse(toOperation(op))}, nil
	}
	return gen.AddMember202JSONResponse{InvocationJSONResponse: gen.InvocationJSONResponse{ID: op.ID}}, nil
}

// RemoveMember removes a member from the network's pin contract.
func (s *Server) RemoveMember(ctx context.Context, r gen.RemoveMemberRequestObject) (gen.RemoveMemberResponseObject, error) {
	ns, request, err := s.memberRequest(r.Namespace, r.Params.Key, idempotencyKey{header: r.Params.IdempotencyKey})
	if err != nil {
		return nil, err
	}
	account, err := contract.ParseAddress(r.Account)
	if err != nil { // a name, then; an account need not be known here yet
		m, err := s.member(ctx, ns, r.Account)
		if err != nil {
			return nil, err
		}
		account = common.BytesToAddress(m.Account)
	}
	op, err := ns.Network.RemoveMember(ctx, request, account)
	if op, err = s.outcome(ctx, op, err, r.Params.Confirm); err != nil {
		return nil, fmt.Errorf("remove a member: %w", err)
	}
	if value(r.Params.Confirm) {
		return gen.RemoveMember200JSONResponse{InvokedJSONResponse: gen.InvokedJSONResponse(toOperation(op))}, nil
	}
	return gen.RemoveMember202JSONResponse{InvocationJSONResponse: gen.InvocationJSONResponse{ID: op.ID}}, nil
}

// UpdateSelf tells the network this member's new URL.
func (s *Server) UpdateSelf(ctx context.Context, r gen.UpdateSelfRequestObject) (gen.UpdateSelfResponseObject, error) {
	ns, request, err := s.memberRequest(r.Namespace, nil, idempotencyKey{r.Params.IdempotencyKey, r.Body.IdempotencyKey})
	if err != nil {
		return nil, err
	}
	if err := checkURL(r.Body.URL); err != nil {
		return nil, err
	}
	op, err := ns.Network.UpdateSelf(ctx, request, r.Body.URL)
	if op, err = s.outcome(ctx, op, err, r.Params.Confirm); err != nil {
		return nil, fmt.Errorf("update this member: %w", err)
	}
	if value(r.Params.Confirm) {
		return gen.UpdateSelf200JSONResponse{InvokedJSONResponse: gen.InvokedJSONResponse(toOperation(op))}, nil
	}
	return gen.UpdateSelf202JSONResponse{InvocationJSONResponse: gen.InvocationJSONResponse{ID: op.ID}}, nil
}

// RotateSelf moves this member to another account.
func (s *Server) RotateSelf(ctx context.Context, r gen.RotateSelfRequestObject) (gen.RotateSelfResponseObject, error) {
	ns, request, err := s.memberRequest(r.Namespace, nil, idempotencyKey{r.Params.IdempotencyKey, r.Body.IdempotencyKey})
	if err != nil {
		return nil, err
	}
	account, err := contract.ParseAddress(r.Body.Account)
	if err != nil {
		return nil, pactwire.Invalid("account", "%s", err.Error())
	}
	op, err := ns.Network.RotateSelf(ctx, request, account)
	if op, err = s.outcome(ctx, op, err, r.Params.Confirm); err != nil {
		return nil, fmt.Errorf("rotate this member's key: %w", err)
	}
	if value(r.Params.Confirm) {
		return gen.RotateSelf200JSONResponse{InvokedJSONResponse: gen.InvokedJSONResponse(toOperation(op))}, nil
	}
	return gen.RotateSelf202JSONResponse{InvocationJSONResponse: gen.InvocationJSONResponse{ID: op.ID}}, nil
}

// memberRequest reads what all changes of the members have in common.
func (s *Server) memberRequest(namespace string, key *string, repeat idempotencyKey) (*Namespace, multiparty.MemberRequest, error) {
	var request multiparty.MemberRequest
	ns, err := s.namespace(namespace)
	if err != nil {
		return nil, request, err
	}
	if request.Key, err = (call{ns: ns, key: key}).signingKey(); err != nil {
		return nil, request, err
	}
	request.IdempotencyKey, err = repeat.value()
	return ns, request, err
}

// outcome waits for the operation's end if that was asked for.
func (s *Server) outcome(ctx context.Context, op store.Operation, err error, confirm *bool) (store.Operation, error) {
	if err != nil || !value(confirm) {
		return op, err
	}
	return s.db.AwaitOperation(ctx, op.ID) //nolint:wrapcheck // says what was done
}

// checkURL refuses a member's URL that no browser could follow.
func checkURL(text string) error {
	if text == "" {
		return nil
	}
	if u, err := url.Parse(text); err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return pactwire.Invalid("url", "must be like https://host/path")
	}
	return nil
}

func toMember(m store.Member, ns *Namespace) gen.Member {
	account := store.Account(m.Account)
	self := account == contract.FormatAddress(ns.Key)
	return gen.Member{Name: m.Name, Account: account, URL: present(m.URL), Self: &self}
}
