package openapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/pactwire/pactwire/contract"
	"github.com/pactwire/pactwire/contracts"
	"github.com/pactwire/pactwire/openapi"
)

var update = flag.Bool("update", false, "write the golden documents instead of comparing with them")

const server = "https://node.pactwire.test/api/v1/namespaces/default/apis/"

// subjects are the documents that testdata holds, by file name. Redocly's linter and other generators get the same files.
func subjects(t testing.TB) map[string]openapi.Subject {
	t.Helper()
	out := map[string]openapi.Subject{}
	for _, a := range []contracts.Artifact{contracts.SimpleStorage(), contracts.Zoo(), contracts.Pactwire()} {
		for suffix, located := range map[string]bool{"": false, "-located": true} {
			name := strings.ToLower(a.Name) + suffix
			out[name] = subject(t, name, a.ABI, located)
		}
	}
	abi, err := os.ReadFile(filepath.Join("testdata", "names.abi.json"))
	if err != nil {
		t.Fatal(err)
	}
	out["names"] = subject(t, "names", abi, false)
	out["empty"] = subject(t, "empty", []byte(`[]`), true)
	out["readonly"] = subject(t, "readonly", []byte(`[{"type":"function","name":"get","inputs":[],"outputs":[],"stateMutability":"view"}]`), true)
	return out
}

func subject(t testing.TB, name string, abi []byte, located bool) openapi.Subject {
	t.Helper()
	definition, err := contract.FromABI(abi)
	if err != nil {
		t.Fatal(err)
	}
	definition.Name, definition.Version = name, "1.0"
	if err := definition.Validate(); err != nil {
		t.Fatal(err)
	}
	definition.AssignPathnames()
	return openapi.Subject{Name: name, Namespace: "default", Server: server + name, Located: located, Interface: definition}
}

func build(t testing.TB, s openapi.Subject) []byte {
	t.Helper()
	body, err := openapi.Build(s)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// load parses a document and holds it against the OpenAPI specification, examples included.
func load(t testing.TB, body []byte) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(body)
	if err != nil {
		t.Fatalf("load: %v\n%s", err, body)
	}
	if err := doc.Validate(context.Background(), openapi3.EnableExamplesValidation(), openapi3.EnableSchemaPatternValidation()); err != nil {
		t.Fatalf("validate: %v\n%s", err, body)
	}
	return doc
}

func TestGoldenDocuments(t *testing.T) {
	for name, s := range subjects(t) {
		t.Run(name, func(t *testing.T) {
			body := build(t, s)
			if again := build(t, s); !bytes.Equal(body, again) {
				t.Error("the same subject gave another document")
			}
			load(t, body)
			var pretty bytes.Buffer
			if err := json.Indent(&pretty, body, "", "  "); err != nil {
				t.Fatal(err)
			}
			pretty.WriteByte('\n')
			file := filepath.Join("testdata", name+".golden.json")
			if *update {
				if err := os.WriteFile(file, pretty.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(pretty.Bytes(), want) {
				t.Errorf("the document differs from %s; if it should, run go test ./openapi -update and look at the difference", file)
			}
		})
	}
}

func TestExamplesWorkAsTheyAre(t *testing.T) {
	for name, s := range subjects(t) {
		t.Run(name, func(t *testing.T) { checkExamples(t, s, load(t, build(t, s))) })
	}
}

// checkExamples holds each example against its schema and sends it through the encoder.
func checkExamples(t testing.TB, s openapi.Subject, doc *openapi3.T) {
	t.Helper()
	compiled, err := contract.Compile(s.Interface)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range compiled.Methods() {
		for _, verb := range []string{"/query/", "/invoke/"} {
			item := doc.Paths.Value(verb + m.Method.Pathname)
			if (item != nil) != (verb == "/query/" || !m.ReadOnly()) {
				t.Fatalf("%s%s: path is there: %v", verb, m.Method.Pathname, item != nil)
			}
			if item == nil {
				continue
			}
			content := item.Post.RequestBody.Value.Content.Get("application/json")
			if content.Example == nil {
				t.Errorf("%s has no example", m.Signature)
				continue
			}
			if err := content.Schema.Value.VisitJSON(content.Example); err != nil {
				t.Errorf("example of %s: %v", m.Signature, err)
			}
			request := content.Example.(map[string]any)
			input, err := json.Marshal(request["input"])
			if err != nil {
				t.Fatal(err)
			}
			if _, err := m.Encode(input); err != nil {
				t.Errorf("example of %s is refused: %v\n%s", m.Signature, err, input)
			}
			if _, located := request["location"]; located == s.Located {
				t.Errorf("example of %s has a location: %v", m.Signature, located)
			}
		}
	}
}

func TestLocationOnlyWhereTheAPIHasNone(t *testing.T) {
	for name, s := range subjects(t) {
		t.Run(name, func(t *testing.T) {
			doc := load(t, build(t, s))
			for path, item := range doc.Paths.Map() {
				request := item.Post.RequestBody.Value.Content.Get("application/json").Schema.Value
				if _, has := request.Properties["location"]; has == s.Located {
					t.Errorf("%s: location is in the request: %v", path, has)
				}
				required := false
				for _, r := range request.Required {
					required = required || r == "location"
				}
				// A listener without a location hears every address.
				if want := !s.Located && !strings.HasPrefix(path, "/listeners/"); required != want {
					t.Errorf("%s: location is required: %v", path, required)
				}
			}
		})
	}
}

func TestPayableAndViewAreToldApart(t *testing.T) {
	const abi = `[
		{"type":"function","name":"read","inputs":[{"name":"a","type":"uint8"}],"outputs":[{"name":"","type":"uint8"}],"stateMutability":"view"},
		{"type":"function","name":"write","inputs":[{"name":"a","type":"int64"}],"outputs":[],"stateMutability":"nonpayable"},
		{"type":"function","name":"pay","inputs":[],"outputs":[],"stateMutability":"payable"}]`
	doc := load(t, build(t, subject(t, "kinds", []byte(abi), true)))
	for path, payable := range map[string]bool{"/query/read": false, "/query/write": false, "/invoke/write": false, "/query/pay": true, "/invoke/pay": true} {
		request := doc.Paths.Value(path).Post.RequestBody.Value.Content.Get("application/json").Schema.Value
		options := request.Properties["options"].Value
		if _, has := options.Properties["value"]; has != payable {
			t.Errorf("%s: takes a value: %v", path, has)
		}
		_, nonce := options.Properties["nonce"]
		if _, block := options.Properties["blockNumber"]; nonce == block || nonce != strings.HasPrefix(path, "/invoke/") {
			t.Errorf("%s: nonce %v, blockNumber %v", path, nonce, block)
		}
		if len(request.Required) != 0 && path != "/query/read" && path != "/query/write" && path != "/invoke/write" {
			t.Errorf("%s: requires %v", path, request.Required)
		}
	}
	if doc.Paths.Value("/invoke/read") != nil {
		t.Error("a view method can be invoked")
	}
	sent := doc.Components.Schemas["read_input"].Value
	if a := sent.Properties["a"].Value; !a.Type.Is("integer") || *a.Min != 0 || *a.Max != 255 || sent.Required[0] != "a" {
		t.Errorf("uint8 as input: %+v", a)
	}
	if out := doc.Components.Schemas["read_output"].Value.Properties["output"].Value; !out.Type.Is("string") {
		t.Errorf("uint8 as output: %+v", out)
	}
	if a := doc.Components.Schemas["write_input"].Value.Properties["a"].Value; !a.Type.Is("string") || a.VisitJSON("-5") != nil || a.VisitJSON("x") == nil {
		t.Errorf("int64 as input: %+v", a)
	}
}

func TestErrorsAreTyped(t *testing.T) {
	for name, s := range subjects(t) {
		doc := load(t, build(t, s))
		for path, item := range doc.Paths.Map() {
			for method, o := range item.Operations() {
				for _, status := range []string{"4XX", "default"} {
					r := o.Responses.Value(status)
					if r == nil || r.Value.Content.Get("application/problem+json").Schema.Ref != "#/components/schemas/Error" {
						t.Errorf("%s: %s %s: answer %s is not the problem body", name, method, path, status)
					}
				}
			}
		}
	}
}

func TestHandMadeSchemas(t *testing.T) {
	// Types said otherwise than the document says them, items without details, and nothing that Validate would have filled in.
	const definition = `{"name":"hand","version":"","methods":[{"name":"f","params":[
		{"name":"flag","schema":{"type":"string","details":{"type":"bool"}}},
		{"name":"small","schema":{"type":"string","details":{"type":"uint8"}}},
		{"name":"list","schema":{"details":{"type":"uint16[2][]"},"items":{"items":{"type":"integer"}}}},
		{"name":"wide","schema":{"type":"integer","details":{"type":"uint"}}},
		{"name":"pair","schema":{"details":{"type":"tuple","internalType":"struct  <b>"},"properties":{
			"b":{"details":{"type":"bytes4","index":0}},"a":{"details":{"type":"function","index":1}}}}}
	],"returns":[]}]}`
	var i contract.Interface
	if err := json.Unmarshal([]byte(definition), &i); err != nil {
		t.Fatal(err)
	}
	s := openapi.Subject{Name: "hand", Server: server + "hand", Interface: i}
	doc := load(t, build(t, s))
	s.Interface.Methods[0].Pathname = "f"
	checkExamples(t, s, doc)
	in := doc.Components.Schemas["f_input"].Value
	if items := in.Properties["list"].Value.Items.Value.Items.Value; !items.Type.Is("integer") || *items.Max != 65535 {
		t.Errorf("items without details: %+v", items)
	}
	if pair := in.Properties["pair"].Value; strings.Join(pair.Required, ",") != "b,a" {
		t.Errorf("components are not in their order: %v", pair.Required)
	}
}

func TestBuildRefusesAWrongInterface(t *testing.T) {
	_, err := openapi.Build(openapi.Subject{Name: "x", Interface: contract.Interface{Methods: []contract.Method{{Name: "no name"}}}})
	if err == nil {
		t.Fatal("a method without a usable name was described")
	}
}
