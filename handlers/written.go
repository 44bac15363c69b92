package handlers

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/pactwire/pactwire/gen"
)

// written is an answer whose JSON is there already. The generated answer types would check and compact it once more, which for a large document takes
// longer than everything else.
type written struct {
	body json.RawMessage
	tag  string // entity tag; may be empty
}

var (
	_ gen.QueryContractAPIResponseObject       = written{}
	_ gen.QueryContractInterfaceResponseObject = written{}
	_ gen.QueryContractResponseObject          = written{}
	_ gen.GetContractAPIDocumentResponseObject = written{}
)

func (a written) write(w http.ResponseWriter) error {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(a.body)))
	if a.tag != "" {
		h.Set("ETag", a.tag)
	}
	w.WriteHeader(http.StatusOK)
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
