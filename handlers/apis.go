package handlers

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/google/uuid"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/contract"
	"github.com/pactwire/pactwire/gen"
	"github.com/pactwire/pactwire/store"
)

// CreateContractAPI names an API and broadcasts it.
func (s *Server) CreateContractAPI(ctx context.Context, r gen.CreateContractAPIRequestObject) (gen.CreateContractAPIResponseObject, error) {
	ns, api, err := s.readAPI(ctx, r.Namespace, *r.Body)
	if err != nil {
		return nil, err
	}
	created, err := ns.Network.BroadcastAPI(ctx, api, value(r.Params.IdempotencyKey))
	if err != nil {
		return nil, fmt.Errorf("broadcast API %s: %w", r.Body.Name, err)
	}
	if !value(r.Params.Confirm) {
		return gen.CreateContractAPI202JSONResponse(toAPI(ctx, created)), nil
	}
	if err := ns.Network.WaitConfirmed(ctx, created.Message); err != nil {
		return nil, fmt.Errorf("wait for API %s: %w", r.Body.Name, err)
	}
	created.State = store.StateConfirmed
	return gen.CreateContractAPI200JSONResponse(toAPI(ctx, created)), nil
}

// UpdateContractAPI gives an API another version of its interface.
func (s *Server) UpdateContractAPI(ctx context.Context, r gen.UpdateContractAPIRequestObject) (gen.UpdateContractAPIResponseObject, error) {
	ns, wanted, err := s.readAPI(ctx, r.Namespace, *r.Body)
	if err != nil {
		return nil, err
	}
	current, err := s.db.API(ctx, r.Namespace, r.APIName)
	if err != nil {
		return nil, fmt.Errorf("update an API: %w", err)
	}
	if wanted.Name != current.Name {
		return nil, pactwire.Invalid("name", "must be %q: the name of an API does not change", current.Name)
	}
	if wanted.Location != nil && !bytes.Equal(wanted.Location, current.Location) {
		return nil, pactwire.Invalid("location.address", "must be the API's own location or be left out: it does not change")
	}
	updated, err := ns.Network.UpdateAPI(ctx, current.ID, wanted.Interface, value(r.Params.IdempotencyKey))
	if err != nil {
		return nil, fmt.Errorf("broadcast API %s: %w", r.Body.Name, err)
	}
	if !value(r.Params.Confirm) {
		return gen.UpdateContractAPI202JSONResponse(toAPI(ctx, updated)), nil
	}
	if err := ns.Network.WaitConfirmed(ctx, updated.Message); err != nil {
		return nil, fmt.Errorf("wait for API %s: %w", r.Body.Name, err)
	}
	updated.State = store.StateConfirmed
	return gen.UpdateContractAPI200JSONResponse(toAPI(ctx, updated)), nil
}

// readAPI checks what a client sent.
func (s *Server) readAPI(ctx context.Context, namespace string, in gen.ContractAPIInput) (*Namespace, store.API, error) {
	ns, err := s.namespace(namespace)
	if err != nil {
		return nil, store.API{}, err
	}
	if err := sameNamespace(namespace, in.Namespace); err != nil {
		return nil, store.API{}, err
	}
	if err := checkName("name", in.Name); err != nil {
		return nil, store.API{}, err
	}
	iface, err := s.findInterface(ctx, namespace, "interface", &in.Interface)
	if err != nil {
		return nil, store.API{}, err
	}
	api := store.API{Namespace: namespace, Name: in.Name, Interface: iface.ID}
	if in.Location != nil {
		address, err := parseLocation(in.Location)
		if err != nil {
			return nil, store.API{}, err
		}
		api.Location = address.Bytes()
	}
	return ns, api, nil
}

// checkName applies the rule for names, which become parts of URLs.
func checkName(path, name string) error {
	if !contract.ValidName(name) {
		return pactwire.Invalid(path, "must have 1 to 64 letters, digits, dots, dashes or underscores, and begin and end with a letter or digit")
	}
	if _, err := uuid.Parse(name); err == nil {
		return pactwire.Invalid(path, "must not look like an id")
	}
	return nil
}

// ListContractAPIs lists APIs.
func (s *Server) ListContractAPIs(ctx context.Context, r gen.ListContractAPIsRequestObject) (gen.ListContractAPIsResponseObject, error) {
	p := page(ctx)
	records, info, err := s.db.ListAPIs(ctx, r.Namespace, p)
	if err != nil {
		return nil, fmt.Errorf("list APIs: %w", err)
	}
	items := make([]gen.ContractAPI, 0, len(records))
	for _, record := range records {
		items = append(items, toAPI(ctx, record))
	}
	headers := gen.ListContractAPIs200ResponseHeaders{XNextAfter: present(info.Next)}
	if p.Count {
		return gen.ListContractAPIs200ApplicationVndPactwirePagePlusJSONResponse{Body: counted(items, info.Total), Headers: headers}, nil
	}
	return gen.ListContractAPIs200JSONResponse{Body: items, Headers: headers}, nil
}

// GetContractAPI returns one API.
func (s *Server) GetContractAPI(ctx context.Context, r gen.GetContractAPIRequestObject) (gen.GetContractAPIResponseObject, error) {
	api, err := s.db.API(ctx, r.Namespace, r.APIName)
	if err != nil {
		return nil, fmt.Errorf("get an API: %w", err)
	}
	return gen.GetContractAPI200JSONResponse(toAPI(ctx, api)), nil
}

// DeleteContractAPI removes this member's copy.
func (s *Server) DeleteContractAPI(ctx context.Context, r gen.DeleteContractAPIRequestObject) (gen.DeleteContractAPIResponseObject, error) {
	if err := s.db.DeleteAPI(ctx, r.Namespace, r.APIName); err != nil {
		return nil, fmt.Errorf("delete an API: %w", err)
	}
	return gen.DeleteContractAPI204Response{}, nil
}

// GetContractAPIInterface returns the interface of an API with its children.
func (s *Server) GetContractAPIInterface(ctx context.Context, r gen.GetContractAPIInterfaceRequestObject) (gen.GetContractAPIInterfaceResponseObject, error) {
	api, err := s.db.API(ctx, r.Namespace, r.APIName)
	if err != nil {
		return nil, fmt.Errorf("get an API: %w", err)
	}
	record, err := s.db.Interface(ctx, r.Namespace, api.Interface)
	if err != nil {
		return nil, fmt.Errorf("get the interface of API %s: %w", api.Name, err)
	}
	out, err := recordedInterface(record, true)
	return gen.GetContractAPIInterface200JSONResponse(out), err
}

// GetContractAPIDocument returns the OpenAPI document of an API.
func (s *Server) GetContractAPIDocument(ctx context.Context, r gen.GetContractAPIDocumentRequestObject) (gen.GetContractAPIDocumentResponseObject, error) {
	return s.answerDocument(ctx, r.Namespace, r.APIName, value(r.Params.IfNoneMatch), documentForm{views: value(r.Params.Views)})
}

// GetContractAPIDocumentYAML returns the same document as YAML.
func (s *Server) GetContractAPIDocumentYAML(ctx context.Context, r gen.GetContractAPIDocumentYAMLRequestObject) (gen.GetContractAPIDocumentYAMLResponseObject, error) {
	return s.answerDocument(ctx, r.Namespace, r.APIName, value(r.Params.IfNoneMatch), documentForm{yaml: true, views: value(r.Params.Views)})
}

func (s *Server) answerDocument(ctx context.Context, namespace, name, known string, form documentForm) (written, error) {
	api, err := s.findAPI(ctx, namespace, name)
	if err != nil {
		return written{}, err
	}
	doc, err := s.document(ctx, api, form)
	if err != nil {
		return written{}, err
	}
	if matches(known, doc.tag) {
		return written{status: http.StatusNotModified, tag: doc.tag}, nil
	}
	return written{body: doc.body, kind: doc.kind, tag: doc.tag}, nil
}

// GetContractAPIPage returns the Swagger UI of an API.
func (s *Server) GetContractAPIPage(ctx context.Context, r gen.GetContractAPIPageRequestObject) (gen.GetContractAPIPageResponseObject, error) {
	api, err := s.findAPI(ctx, r.Namespace, r.APIName)
	if err != nil {
		return nil, err
	}
	// The document's address is relative to the page's, so that it is right behind any proxy.
	body := s.cfg.Page(api.Name, "api/swagger.json")
	return gen.GetContractAPIPage200TextHTMLResponse{
		Body: bytes.NewReader(body), ContentLength: int64(len(body)),
		Headers: gen.GetContractAPIPage200ResponseHeaders{ContentSecurityPolicy: &s.cfg.PagePolicy},
	}, nil
}

// apiURL is the address of an API, as clients reach it.
func apiURL(ctx context.Context, namespace, name string) string {
	return base(ctx) + apiBase + "/namespaces/" + url.PathEscape(namespace) + "/apis/" + url.PathEscape(name)
}

func toAPI(ctx context.Context, api store.API) gen.ContractAPI {
	address := apiURL(ctx, api.Namespace, api.Name)
	created := api.Created.UTC()
	out := gen.ContractAPI{
		ID: api.ID, Namespace: api.Namespace, Name: api.Name, Interface: gen.InterfaceReference{ID: &api.Interface}, Message: api.Message,
		State: present(api.State), Created: &created,
		Urls: gen.ContractAPIURLs{Openapi: address + "/api/swagger.json", UI: address + "/api"},
	}
	if api.Location != nil {
		out.Location = &gen.Location{Address: store.Account(api.Location)}
	}
	return out
}
