package handlers

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/pactwire/pactwire/gen"
)

// written is an answer whose JSON, or other text, is there already. The generated answer types would check and compact it once more, which for a large document takes
// longer than everything else.
type written struct {
	status int             // 0 is 200
	body   json.RawMessage // or what kind says
	kind   string          // of content; JSON when empty
	tag    string          // entity tag; may be empty
}

var (
	_ gen.QueryContractAPIResponseObject           = written{}
	_ gen.QueryContractInterfaceResponseObject     = written{}
	_ gen.QueryContractResponseObject              = written{}
	_ gen.GetContractAPIDocumentResponseObject     = written{}
	_ gen.GetContractAPIDocumentYAMLResponseObject = written{}
)

func (a written) write(w http.ResponseWriter) error {
	h := w.Header()
	if a.tag != "" {
		h.Set("ETag", a.tag)
	}
	if a.status == http.StatusNotModified {
		w.WriteHeader(a.status) // it has no body, and the type and length of none
		return nil
	}
	h.Set("Content-Type", cmp.Or(a.kind, "application/json"))
	h.Set("Content-Length", strconv.Itoa(len(a.body)))
	w.WriteHeader(cmp.Or(a.status, http.StatusOK))
	_, err := w.Write(a.body)
	return err //nolint:wrapcheck // the connection's
}

// VisitQueryContractAPIResponse implements gen.QueryContractAPIResponseObject.
func (a written) VisitQueryContractAPIResponse(w http.ResponseWriter) error { return a.write(w) }

// VisitQueryContractInterfaceResponse implements gen.QueryContractInterfaceResponseObject.
func (a written) VisitQueryContractInterfaceResponse(w http.ResponseWriter) error { return a.write(w) }

// VisitQueryContractResponse implements gen.QueryContractResponseObject.
func (a written) VisitQueryContractResponse(w http.ResponseWriter) error { return a.write(w) }

// VisitGetContractAPIDocumentResponse implements gen.GetContractAPIDocumentResponseObject.
func (a written) VisitGetContractAPIDocumentResponse(w http.ResponseWriter) error { return a.write(w) }

// VisitGetContractAPIDocumentYAMLResponse implements gen.GetContractAPIDocumentYAMLResponseObject.
func (a written) VisitGetContractAPIDocumentYAMLResponse(w http.ResponseWriter) error {
	return a.write(w)
}
