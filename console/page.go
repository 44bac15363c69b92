package console

import (
	"bytes"
	_ "embed"
	"html/template"
	"strings"
)

// Policy is the Content-Security-Policy that each page needs, and no more. Swagger UI sets style attributes; everything else comes from the same origin.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; " +
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// AssetsPath is where Assets belongs: AssetsPath + "*" on the router.
const AssetsPath = "/console/assets/"

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

// Page is the page that shows the OpenAPI document at specURL; an address without a host is on the page's own server. basePath goes before AssetsPath where a
// proxy serves Pactwire under a path of its own; it is empty otherwise. Send the page with Policy as its Content-Security-Policy.
func Page(title, specURL, basePath string) []byte {
	var out bytes.Buffer
	err := page.Execute(&out, struct{ Title, SpecURL, Assets string }{title, specURL, strings.TrimSuffix(basePath, "/") + AssetsPath})
	if err != nil {
		panic("render the Swagger UI page: " + err.Error()) // the template is part of the binary, and no value can break it
	}
	return out.Bytes()
}
