package handlers

import (
	"context"
	"fmt"
	"time"

	"github.com/pactwire/pactwire/chain"
	"github.com/pactwire/pactwire/contract"
	"github.com/pactwire/pactwire/gen"
	"github.com/pactwire/pactwire/store"
)

// ListNamespaces lists the namespaces of the configuration.
func (s *Server) ListNamespaces(ctx context.Context, _ gen.ListNamespacesRequestObject) (gen.ListNamespacesResponseObject, error) {
	out := make(gen.ListNamespaces200JSONResponse, 0, len(s.cfg.Namespaces))
	for i := range s.cfg.Namespaces {
		record, err := s.namespaceRecord(ctx, &s.cfg.Namespaces[i])
		if err != nil {
			return nil, err
		}
		out = append(out, record)
	}
	return out, nil
}

// GetNamespace returns one namespace.
func (s *Server) GetNamespace(ctx context.Context, r gen.GetNamespaceRequestObject) (gen.GetNamespaceResponseObject, error) {
	ns, err := s.namespace(r.Namespace)
	if err != nil {
		return nil, err
	}
	record, err := s.namespaceRecord(ctx, ns)
	return gen.GetNamespace200JSONResponse(record), err
}

func (s *Server) namespaceRecord(ctx context.Context, ns *Namespace) (gen.NamespaceRecord, error) {
	stored, err := s.db.Namespace(ctx, ns.Name)
	if err != nil {
		return gen.NamespaceRecord{}, fmt.Errorf("read a namespace: %w", err)
	}
	return gen.NamespaceRecord{
		Name: ns.Name, NetworkName: ns.NetworkName, Description: present(ns.Description), Chain: ns.Chain.Name, Created: stored.Created.UTC(),
	}, nil
}

// GetStatus tells how the node is. A chain that does not answer is part of the answer, not a failure of it.
func (s *Server) GetStatus(ctx context.Context, r gen.GetStatusRequestObject) (gen.GetStatusResponseObject, error) {
	ns, err := s.namespace(r.Namespace)
	if err != nil {
		return nil, err
	}
	stored, err := s.db.Namespace(ctx, ns.Name)
	if err != nil {
		return nil, fmt.Errorf("read a namespace: %w", err)
	}
	known, err := s.db.Chain(ctx, ns.Chain.Name)
	if err != nil {
		return nil, fmt.Errorf("read a chain: %w", err)
	}
	members, err := s.db.Members(ctx, ns.Name)
	if err != nil {
		return nil, fmt.Errorf("read the members: %w", err)
	}
	keys, err := s.keyStatus(ctx, ns.Chain)
	if err != nil {
		return nil, err
	}
	connections := s.db.Stats().OpenConnections
	out := gen.GetStatus200JSONResponse{
		Node:      gen.NodeStatus{Name: s.cfg.NodeName, Version: s.cfg.Version, Started: s.started},
		Namespace: gen.NamespaceStatus{Name: ns.Name, NetworkName: ns.NetworkName, Sequence: stored.Sequence},
		Chain:     s.chainStatus(ctx, ns, known, keys),
		Database:  gen.DatabaseStatus{Reachable: true, SchemaVersion: int(s.cfg.SchemaVersion), Connections: &connections}, //nolint:gosec // a small number
		Members:   make([]gen.Member, 0, len(members)),
		Defaults:  &gen.StatusDefaults{Namespace: &s.cfg.Namespaces[0].Name},
	}
	for _, m := range members {
		out.Members = append(out.Members, toMember(m, ns))
	}
	return out, nil
}

func (s *Server) chainStatus(ctx context.Context, ns *Namespace, known store.Chain, keys []gen.KeyStatus) gen.ChainStatus {
	recorded := known.NextBlock - 1
	key := contract.FormatAddress(ns.Key)
	out := gen.ChainStatus{Name: ns.Chain.Name, ID: known.ChainID, Recorded: &recorded, Key: &key, Keys: keys}
	out.Nodes = toChainNodes(ns.Chain.Client.Nodes())
	if known.PinContract != nil {
		out.PinContract = present(store.Account(known.PinContract))
	}
	limited, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	head, err := ns.Chain.Client.Head(limited)
	if err != nil {
		out.Error = present("The chain's node does not answer.")
		return out
	}
	number := int64(head.Number)                                                 //nolint:gosec // no chain reaches 2^63 blocks
	age := float32(max(0, time.Since(time.Unix(int64(head.Time), 0)).Seconds())) // a development chain's clock may be ahead
	out.Reachable, out.Head, out.HeadAgeSeconds = true, &number, &age
	return out
}

func toChainNodes(nodes []chain.Node) []gen.ChainNode {
	out := make([]gen.ChainNode, len(nodes))
	for i, n := range nodes {
		out[i] = gen.ChainNode{URL: n.URL, State: gen.ChainNodeStateStandby}
		switch {
		case n.Reason != "":
			until := n.Until.UTC()
			out[i].State, out[i].Reason, out[i].Until = gen.ChainNodeStateSetAside, &n.Reason, &until
		case n.InUse:
			out[i].State = gen.ChainNodeStateInUse
		}
	}
	return out
}

func toListenerStatus(p chain.Progress) *gen.ListenerStatus {
	out := &gen.ListenerStatus{Mode: p.Mode, Head: &p.Head, Checkpoint: &p.Checkpoint, Lag: &p.Lag, Events: p.Events}
	if p.Remaining != nil {
		seconds := float32(p.Remaining.Seconds())
		out.SecondsLeft = &seconds
	}
	return out
}
