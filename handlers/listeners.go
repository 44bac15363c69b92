package handlers

import (
	"context"
	"encoding/json"
	"fmt"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/chain"
	"github.com/pactwire/pactwire/contract"
	"github.com/pactwire/pactwire/gen"
	"github.com/pactwire/pactwire/store"
)

// newListener is a listener as a request asks for it.
type newListener struct {
	ns         *Namespace
	event      *contract.CompiledEvent
	iface      *store.Interface // nil when the request describes the event
	address    []byte           // nil: every address
	name       *string
	topic      *string
	firstEvent *string
}

// CreateContractListener listens to an event of an interface, or to one that the request describes.
func (s *Server) CreateContractListener(ctx context.Context, r gen.CreateContractListenerRequestObject) (gen.CreateContractListenerResponseObject, error) {
	ns, err := s.namespace(r.Namespace)
	if err != nil {
		return nil, err
	}
	if err := sameNamespace(r.Namespace, r.Body.Namespace); err != nil {
		return nil, err
	}
	n := newListener{ns: ns, name: r.Body.Name, topic: r.Body.Topic, firstEvent: firstEvent(r.Body.Options)}
	switch {
	case r.Body.Interface != nil && r.Body.EventPath != nil && r.Body.Event == nil:
		record, err := s.findInterface(ctx, r.Namespace, "interface", r.Body.Interface)
		if err != nil {
			return nil, err
		}
		compiled, err := s.compileRecord(record)
		if err != nil {
			return nil, err
		}
		if n.event, err = compiled.Event(*r.Body.EventPath); err != nil {
			return nil, fmt.Errorf("find an event: %w", err)
		}
		n.iface = &record
	case r.Body.Event != nil && r.Body.EventPath == nil:
		if n.event, err = contract.CompileEvent(fromEvent(*r.Body.Event)); err != nil {
			return nil, fmt.Errorf("read the event: %w", err)
		}
	case r.Body.Event != nil:
		return nil, pactwire.Invalid("event", "cannot be given together with eventPath")
	case r.Body.Interface == nil:
		return nil, pactwire.Invalid("interface", "is required: the interface that has the event")
	default:
		return nil, pactwire.Invalid("eventPath", "is required: the pathname of an event of the interface")
	}
	if r.Body.Location != nil {
		address, err := parseLocation(r.Body.Location)
		if err != nil {
			return nil, err
		}
		n.address = address.Bytes()
	}
	created, err := s.createListener(ctx, n)
	if err != nil {
		return nil, err
	}
	return gen.CreateContractListener200JSONResponse(created), nil
}

// CreateContractInterfaceListener listens to an event of an interface.
func (s *Server) CreateContractInterfaceListener(ctx context.Context, r gen.CreateContractInterfaceListenerRequestObject) (gen.CreateContractInterfaceListenerResponseObject, error) {
	record, err := s.db.Interface(ctx, r.Namespace, r.InterfaceID)
	if err != nil {
		return nil, fmt.Errorf("find an interface: %w", err)
	}
	created, err := s.listenToEvent(ctx, record, nil, r.EventPath, *r.Body)
	if err != nil {
		return nil, err
	}
	return gen.CreateContractInterfaceListener200JSONResponse(created), nil
}

// CreateContractAPIListener listens to an event of an API.
func (s *Server) CreateContractAPIListener(ctx context.Context, r gen.CreateContractAPIListenerRequestObject) (gen.CreateContractAPIListenerResponseObject, error) {
	api, err := s.db.API(ctx, r.Namespace, r.APIName)
	if err != nil {
		return nil, fmt.Errorf("find an API: %w", err)
	}
	record, err := s.db.Interface(ctx, r.Namespace, api.Interface)
	if err != nil {
		return nil, fmt.Errorf("find the interface of API %s: %w", api.Name, err)
	}
	created, err := s.listenToEvent(ctx, record, api.Location, r.EventPath, *r.Body)
	if err != nil {
		return nil, err
	}
	return gen.CreateContractAPIListener200JSONResponse(created), nil
}

// listenToEvent makes a listener where the path names interface and event; own is the API's location.
func (s *Server) listenToEvent(ctx context.Context, record store.Interface, own []byte, eventPath string, body gen.EventListenerInput) (gen.ContractListener, error) {
	none := gen.ContractListener{}
	ns, err := s.namespace(record.Namespace)
	if err != nil {
		return none, err
	}
	compiled, err := s.compileRecord(record)
	if err != nil {
		return none, err
	}
	event, err := compiled.Event(eventPath)
	if err != nil {
		return none, fmt.Errorf("find an event: %w", err)
	}
	address := own
	if body.Location != nil {
		given, err := locate(own, body.Location)
		if err != nil {
			return none, err
		}
		address = given.Bytes()
	}
	return s.createListener(ctx, newListener{
		ns: ns, event: event, iface: &record, address: address, name: body.Name, topic: body.Topic, firstEvent: firstEvent(body.Options),
	})
}

func firstEvent(o *gen.ListenerOptions) *string {
	if o == nil {
		return nil
	}
	return o.FirstEvent
}

func (s *Server) createListener(ctx context.Context, n newListener) (gen.ContractListener, error) {
	none := gen.ContractListener{}
	id := store.NewID()
	l := store.Listener{
		ID: id, Namespace: n.ns.Name, Chain: n.ns.Chain.Name, ProtocolID: "sb-" + id.String(), Address: n.address,
		Signature: n.event.Signature, Topic: value(n.topic), Created: store.Now(),
	}
	l.Name = l.ProtocolID
	if value(n.name) != "" {
		l.Name = *n.name
		if err := checkName("name", l.Name); err != nil {
			return none, err
		}
	}
	if l.Topic != "" {
		if err := checkName("topic", l.Topic); err != nil {
			return none, err
		}
	}
	if !n.event.Anonymous {
		l.Topic0 = n.event.Topic0.Bytes()
	}
	if n.iface != nil {
		l.Interface = &n.iface.ID
	}
	definition, err := json.Marshal(n.event.Event)
	if err != nil {
		return none, fmt.Errorf("encode event %s: %w", n.event.Signature, err)
	}
	l.Event = string(definition)
	if l.FirstBlock, l.FirstEvent, err = chain.ResolveFirstEvent(ctx, n.ns.Chain.Client, value(n.firstEvent)); err != nil {
		return none, fmt.Errorf("find the first block of a listener: %w", err)
	}
	if err := s.db.CreateListener(ctx, l); err != nil {
		return none, fmt.Errorf("make a listener: %w", err)
	}
	return toListener(l)
}

// ListContractListeners lists listeners.
func (s *Server) ListContractListeners(ctx context.Context, r gen.ListContractListenersRequestObject) (gen.ListContractListenersResponseObject, error) {
	p := page(ctx)
	items, info, err := s.listListeners(ctx, r.Namespace, p, value(r.Params.FetchStatus))
	if err != nil {
		return nil, err
	}
	headers := gen.ListContractListeners200ResponseHeaders{XNextAfter: present(info.Next)}
	if p.Count {
		return gen.ListContractListeners200ApplicationVndPactwirePagePlusJSONResponse{Body: counted(items, info.Total), Headers: headers}, nil
	}
	return gen.ListContractListeners200JSONResponse{Body: items, Headers: headers}, nil
}

// ListContractInterfaceListeners lists the listeners of one event of an interface.
func (s *Server) ListContractInterfaceListeners(ctx context.Context, r gen.ListContractInterfaceListenersRequestObject) (gen.ListContractInterfaceListenersResponseObject, error) {
	compiled, err := s.compile(ctx, r.Namespace, r.InterfaceID)
	if err != nil {
		return nil, err
	}
	event, err := compiled.Event(r.EventPath)
	if err != nil {
		return nil, fmt.Errorf("find an event: %w", err)
	}
	p := page(ctx)
	p.Filters["interface"], p.Filters["signature"] = r.InterfaceID.String(), event.Signature
	items, info, err := s.listListeners(ctx, r.Namespace, p, false)
	if err != nil {
		return nil, err
	}
	headers := gen.ListContractInterfaceListeners200ResponseHeaders{XNextAfter: present(info.Next)}
	if p.Count {
		return gen.ListContractInterfaceListeners200ApplicationVndPactwirePagePlusJSONResponse{Body: counted(items, info.Total), Headers: headers}, nil
	}
	return gen.ListContractInterfaceListeners200JSONResponse{Body: items, Headers: headers}, nil
}

// ListContractAPIListeners lists the listeners of one event of an API: those of its interface at its location.
func (s *Server) ListContractAPIListeners(ctx context.Context, r gen.ListContractAPIListenersRequestObject) (gen.ListContractAPIListenersResponseObject, error) {
	api, err := s.db.API(ctx, r.Namespace, r.APIName)
	if err != nil {
		return nil, fmt.Errorf("find an API: %w", err)
	}
	compiled, err := s.compile(ctx, r.Namespace, api.Interface)
	if err != nil {
		return nil, err
	}
	event, err := compiled.Event(r.EventPath)
	if err != nil {
		return nil, fmt.Errorf("find an event: %w", err)
	}
	p := page(ctx)
	p.Filters["interface"], p.Filters["signature"] = api.Interface.String(), event.Signature
	if api.Location != nil {
		p.Filters["location"] = store.Account(api.Location)
	}
	items, info, err := s.listListeners(ctx, r.Namespace, p, false)
	if err != nil {
		return nil, err
	}
	headers := gen.ListContractAPIListeners200ResponseHeaders{XNextAfter: present(info.Next)}
	if p.Count {
		return gen.ListContractAPIListeners200ApplicationVndPactwirePagePlusJSONResponse{Body: counted(items, info.Total), Headers: headers}, nil
	}
	return gen.ListContractAPIListeners200JSONResponse{Body: items, Headers: headers}, nil
}

func (s *Server) listListeners(ctx context.Context, namespace string, p store.Page, status bool) ([]gen.ContractListener, store.PageInfo, error) {
	records, info, err := s.db.ListListeners(ctx, namespace, p)
	if err != nil {
		return nil, info, fmt.Errorf("list listeners: %w", err)
	}
	items, err := convertAll(records, func(l store.Listener) (gen.ContractListener, error) {
		return s.listenerAnswer(ctx, l, status)
	})
	return items, info, err
}

// GetContractListener returns one listener.
func (s *Server) GetContractListener(ctx context.Context, r gen.GetContractListenerRequestObject) (gen.GetContractListenerResponseObject, error) {
	l, err := s.db.Listener(ctx, r.Namespace, r.NameOrID)
	if err != nil {
		return nil, fmt.Errorf("get a listener: %w", err)
	}
	out, err := s.listenerAnswer(ctx, l, value(r.Params.FetchStatus))
	return gen.GetContractListener200JSONResponse(out), err
}

// DeleteContractListener stops listening.
func (s *Server) DeleteContractListener(ctx context.Context, r gen.DeleteContractListenerRequestObject) (gen.DeleteContractListenerResponseObject, error) {
	if err := s.db.DeleteListener(ctx, r.Namespace, r.NameOrID); err != nil {
		return nil, fmt.Errorf("delete a listener: %w", err)
	}
	return gen.DeleteContractListener204Response{}, nil
}

func (s *Server) listenerAnswer(ctx context.Context, l store.Listener, status bool) (gen.ContractListener, error) {
	out, err := toListener(l)
	if err != nil || !status {
		return out, err
	}
	ns, err := s.namespace(l.Namespace)
	if err != nil {
		return out, err
	}
	now, err := chain.ListenerStatus(ctx, ns.Chain.Client, s.db, l)
	if err != nil {
		return out, fmt.Errorf("read the status of listener %s: %w", l.Name, err)
	}
	out.Status = toListenerStatus(now)
	return out, nil
}

func toListener(l store.Listener) (gen.ContractListener, error) {
	event, err := l.ContractEvent()
	if err != nil {
		return gen.ContractListener{}, fmt.Errorf("read listener %s: %w", l.Name, err)
	}
	out := gen.ContractListener{
		ID: l.ID, Interface: reference(l.Interface), Namespace: l.Namespace, Name: l.Name, ProtocolID: l.ProtocolID, Created: l.Created.UTC(),
		Signature: l.Signature, Topic: present(l.Topic), Options: gen.ListenerOptions{FirstEvent: &l.FirstEvent},
		Event: gen.ListenerEvent{
			Name: event.Name, Description: event.Description, Params: toParams(event.Params), Details: toEventDetails(event.Details),
		},
	}
	if l.Address != nil {
		out.Location = &gen.Location{Address: store.Account(l.Address)}
	}
	return out, nil
}
