package handlers

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/contract"
	"github.com/pactwire/pactwire/gen"
	"github.com/pactwire/pactwire/store"
)

// GenerateContractInterface turns an ABI into an interface; nothing is stored.
func (s *Server) GenerateContractInterface(_ context.Context, r gen.GenerateContractInterfaceRequestObject) (gen.GenerateContractInterfaceResponseObject, error) {
	generated, err := contract.FromABI(r.Body.Input.Abi)
	if err != nil {
		return nil, fmt.Errorf("generate an interface: %w", err)
	}
	generated.Namespace = r.Namespace
	generated.Name, generated.Version = value(r.Body.Name), value(r.Body.Version)
	generated.Description = value(r.Body.Description)
	return gen.GenerateContractInterface200JSONResponse(toInterface(generated, true)), nil
}

// CreateContractInterface broadcasts an interface.
func (s *Server) CreateContractInterface(ctx context.Context, r gen.CreateContractInterfaceRequestObject) (gen.CreateContractInterfaceResponseObject, error) {
	ns, err := s.namespace(r.Namespace)
	if err != nil {
		return nil, err
	}
	if err := sameNamespace(r.Namespace, r.Body.Namespace); err != nil {
		return nil, err
	}
	broadcast, err := ns.Network.BroadcastInterface(ctx, fromInterface(*r.Body), value(r.Params.IdempotencyKey))
	if err != nil {
		return nil, fmt.Errorf("broadcast interface %s: %w", r.Body.Name, err)
	}
	out := toInterface(broadcast, true)
	state := store.StateReady
	if value(r.Params.IdempotencyKey) != "" { // it may be a repeat, and further on
		record, err := s.db.Interface(ctx, r.Namespace, *broadcast.ID)
		if err != nil {
			return nil, fmt.Errorf("read interface %s: %w", broadcast.ID, err)
		}
		state = record.State
	}
	out.State = &state
	if !value(r.Params.Confirm) {
		return gen.CreateContractInterface202JSONResponse(out), nil
	}
	if err := ns.Network.WaitConfirmed(ctx, *broadcast.Message); err != nil {
		return nil, fmt.Errorf("wait for interface %s: %w", r.Body.Name, err)
	}
	state = store.StateConfirmed
	return gen.CreateContractInterface200JSONResponse(out), nil
}

// sameNamespace refuses a body that names another namespace than the path.
func sameNamespace(path string, body *string) error {
	if body != nil && *body != "" && *body != path {
		return pactwire.Invalid("namespace", "must be %q, the namespace of the path, or be left out", path)
	}
	return nil
}

// ListContractInterfaces lists interfaces without their children.
func (s *Server) ListContractInterfaces(ctx context.Context, r gen.ListContractInterfacesRequestObject) (gen.ListContractInterfacesResponseObject, error) {
	p := page(ctx)
	records, info, err := s.db.ListInterfaces(ctx, r.Namespace, p)
	if err != nil {
		return nil, fmt.Errorf("list interfaces: %w", err)
	}
	items, err := convertAll(records, func(i store.Interface) (gen.ContractInterface, error) { return recordedInterface(i, false) })
	if err != nil {
		return nil, err
	}
	headers := gen.ListContractInterfaces200ResponseHeaders{XNextAfter: present(info.Next)}
	if p.Count {
		return gen.ListContractInterfaces200ApplicationVndPactwirePagePlusJSONResponse{Body: counted(items, info.Total), Headers: headers}, nil
	}
	return gen.ListContractInterfaces200JSONResponse{Body: items, Headers: headers}, nil
}

// recordedInterface makes the answer from a record.
func recordedInterface(record store.Interface, children bool) (gen.ContractInterface, error) {
	var definition contract.Interface
	if children {
		var err error
		if definition, err = record.Contract(); err != nil {
			return gen.ContractInterface{}, fmt.Errorf("read interface %s: %w", record.ID, err)
		}
	}
	out := toInterface(definition, children)
	created := record.Created.UTC()
	out.ID, out.Message, out.Namespace = &record.ID, &record.Message, record.Namespace
	out.Name, out.Version, out.Description = record.Name, record.Version, record.Description
	out.State, out.Created = &record.State, &created
	return out, nil
}

// GetContractInterface returns an interface by its id.
func (s *Server) GetContractInterface(ctx context.Context, r gen.GetContractInterfaceRequestObject) (gen.GetContractInterfaceResponseObject, error) {
	record, err := s.db.Interface(ctx, r.Namespace, r.InterfaceID)
	if err != nil {
		return nil, fmt.Errorf("get an interface: %w", err)
	}
	out, err := recordedInterface(record, value(r.Params.FetchChildren))
	return gen.GetContractInterface200JSONResponse(out), err
}

// GetContractInterfaceByName returns an interface by its name and version.
func (s *Server) GetContractInterfaceByName(ctx context.Context, r gen.GetContractInterfaceByNameRequestObject) (gen.GetContractInterfaceByNameResponseObject, error) {
	record, err := s.db.InterfaceByName(ctx, r.Namespace, r.InterfaceName, r.InterfaceVersion)
	if err != nil {
		return nil, fmt.Errorf("get an interface: %w", err)
	}
	out, err := recordedInterface(record, value(r.Params.FetchChildren))
	return gen.GetContractInterfaceByName200JSONResponse(out), err
}

// DeleteContractInterface removes this member's copy.
func (s *Server) DeleteContractInterface(ctx context.Context, r gen.DeleteContractInterfaceRequestObject) (gen.DeleteContractInterfaceResponseObject, error) {
	if err := s.db.DeleteInterface(ctx, r.Namespace, r.InterfaceID); err != nil {
		return nil, fmt.Errorf("delete an interface: %w", err)
	}
	return gen.DeleteContractInterface204Response{}, nil
}

// findInterface resolves a reference from a request: an id, or a name with a version. path is where the reference stands.
func (s *Server) findInterface(ctx context.Context, namespace, path string, ref *gen.InterfaceReference) (store.Interface, error) {
	switch {
	case ref != nil && ref.ID != nil:
		return s.db.Interface(ctx, namespace, *ref.ID) //nolint:wrapcheck // says what was sought
	case ref != nil && ref.Name != nil && ref.Version != nil:
		return s.db.InterfaceByName(ctx, namespace, *ref.Name, *ref.Version) //nolint:wrapcheck // says what was sought
	default:
		return store.Interface{}, pactwire.Invalid(path+".id", "is required: the id of a broadcast interface")
	}
}

// ready is an interface that calls can be made with.
type ready struct {
	*contract.Compiled
	errors []contract.Error // the definitions, which go with each operation
}

// compile makes an interface ready for calls. Interfaces never change, so each is compiled once.
func (s *Server) compile(ctx context.Context, namespace string, id uuid.UUID) (*ready, error) {
	key := namespace + "/" + id.String()
	if compiled, ok := s.compiled.Get(key); ok {
		return compiled, nil
	}
	record, err := s.db.Interface(ctx, namespace, id)
	if err != nil {
		return nil, fmt.Errorf("read an interface: %w", err)
	}
	return s.compileRecord(record)
}

func (s *Server) compileRecord(record store.Interface) (*ready, error) {
	key := record.Namespace + "/" + record.ID.String()
	if compiled, ok := s.compiled.Get(key); ok {
		return compiled, nil
	}
	definition, err := record.Contract()
	if err != nil {
		return nil, fmt.Errorf("read interface %s: %w", record.ID, err)
	}
	compiled, err := contract.Compile(definition)
	if err != nil {
		return nil, fmt.Errorf("compile interface %s: %w", record.ID, err)
	}
	r := &ready{Compiled: compiled, errors: definition.Errors}
	s.compiled.Add(key, r)
	return r, nil
}
