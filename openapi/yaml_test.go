package openapi_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"testing"

	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	"github.com/pactwire/pactwire/openapi"
)

// plain writes numbers alike, whatever read them.
func plain(t interface{ Fatal(...any) }, v any) any {
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var out any
	if err := decoder.Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestYAMLSaysTheSameAsJSONInTheSameOrder(t *testing.T) {
	t.Parallel()
	for name, s := range subjects(t) {
		body := build(t, s)
		text, err := openapi.ToYAML(body)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var a, b any
		if err := json.Unmarshal(body, &a); err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(text, &b); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !reflect.DeepEqual(plain(t, a), plain(t, b)) {
			t.Errorf("%s: the YAML says something else", name)
		}
		inJSON := regexp.MustCompile(`"(/(?:query|invoke|listeners)/[^"]*)":`).FindAllSubmatch(body, -1)
		inYAML := regexp.MustCompile(`(?m)^  (/[^:]*):$`).FindAllSubmatch(text, -1)
		if !slices.EqualFunc(inJSON, inYAML, func(x, y [][]byte) bool { return bytes.Equal(x[1], y[1]) }) {
			t.Errorf("%s: the paths stand in another order: %q, %q", name, inJSON, inYAML)
		}
		load(t, text)
	}
}

// Whatever the name or description of a contract is: YAML gives it another meaning less easily than one thinks.
func TestAnyTextKeepsItsMeaningInYAML(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
			"", "no", "Yes", "null", "~", "1e3", "0x10", "0o7", "1_000", "2001-01-01", "12:30:45", ".inf", "- a", "a: b", "# c", "&a", "*a", "!!int 1", "%", "@",
			"a\nb\n", " \n ", "\t", "\x00", "\x7f", "\u0085", "\u2028", "\ufeff", "\U0001f600", "---", "...", "'", `"`, `\`, "a\r\nb", "<<", "=", "? a", "| a", "> a",
		})).Draw(t, "text")
		document := map[string]any{text + "k": []any{text, map[string]any{"k": text}}, "k": text}
		raw, err := json.Marshal(document)
		if err != nil {
			t.Fatal(err)
		}
		written, err := openapi.ToYAML(raw)
		if err != nil {
			t.Fatal(err)
		}
		var got any
		if err := yaml.Unmarshal(written, &got); err != nil {
			t.Fatalf("%q: %v\n%s", text, err, written)
		}
		if want := plain(t, document); !reflect.DeepEqual(plain(t, got), want) {
			t.Fatalf("%q became\n%s", raw, written)
		}
	})
}

func TestViewMethodsGetInvokePathsWhenAskedFor(t *testing.T) {
	t.Parallel()
	s := subjects(t)["simplestorage-located"]
	if load(t, build(t, s)).Paths.Find("/invoke/get") != nil {
		t.Error("a view method has an invoke path")
	}
	s.Views = true
	doc := load(t, build(t, s))
	if doc.Paths.Find("/invoke/get") == nil || doc.Paths.Find("/invoke/set") == nil || doc.Paths.Find("/query/get") == nil {
		t.Errorf("a path is missing: %v", doc.Paths.InMatchingOrder())
	}
}
