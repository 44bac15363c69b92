package handlers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	pactwire "github.com/pactwire/pactwire"
)

func TestCheckJSON(t *testing.T) {
	many := func(last string) string {
		var b strings.Builder
		for i := range 40 {
			fmt.Fprintf(&b, `"n%d":%d,`, i, i)
		}
		return "{" + b.String() + last + "}"
	}
	cases := []struct{ name, body, message, field string }{
		{"object", `{"a":1,"b":[{"a":1},{"a":2}],"c":{"a":"a","b":"b"}}`, "", ""},
		{"scalar", ` "x" `, "", ""},
		{"array", `[1,"a","a",{"a":"a"}]`, "", ""},
		{"name as value", `{"a":"b","b":"a","c":["a","a"]}`, "", ""},
		{"name again further down", `{"a":{"a":{"a":1}},"b":{"a":1}}`, "", ""},
		{"name again after an inner object", `{"a":{"b":1},"b":2}`, "", ""},
		{"quotes and braces in strings", `{"a\"":"{[\\","b":"\"a\":1,\"a\":2}"}`, "", ""},
		{"case matters", `{"a":1,"A":2}`, "", ""},
		{"many names", many(`"last":1`), "", ""},
		{"deepest", strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth), "", ""},
		{"too deep", strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1), "levels deep", ""},
		{"too deep in objects", strings.Repeat(`{"a":`, maxDepth+1) + "1" + strings.Repeat("}", maxDepth+1), "levels deep", ""},
		{"twice", `{"a":1,"a":2}`, "twice", "a"},
		{"twice by escape", `{"a":1,"\u0061":2}`, "twice", "a"},
		{"twice after an inner object", `{"a":{"b":1},"c":[],"a":2}`, "twice", "a"},
		{"twice far inside", `[{"x":[{"y":{"z":1,"z":1}}]}]`, "twice", "z"},
		{"twice the empty name", `{"":1,"":2}`, "twice", ""},
		{"twice among many", many(`"n0":1`), "twice", "n0"},
		{"twice among many, late", many(`"n39":1`), "twice", "n39"},
		{"empty", ``, "not valid JSON", ""},
		{"two values", `{} {}`, "not valid JSON", ""},
		{"cut", "{\n\"a\":", "line 2", ""},
		{"trailing comma", `{"a":1,}`, "not valid JSON", ""},
		{"not a number", `{"a":NaN}`, "not valid JSON", ""},
		{"no UTF-8", "{\"a\":\"\xff\"}", "UTF-8", ""},
		{"byte order mark", "\ufeff{}", "not valid JSON", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			err := checkJSON([]byte(c.body))
			if c.message == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			var e *pactwire.Error
			if !errors.As(err, &e) || e.Kind != pactwire.KindInvalid || !strings.Contains(e.Message, c.message) {
				t.Fatalf("got %v, want an invalid request with %q", err, c.message)
			}
			if c.field != "" && (len(e.Fields) != 1 || e.Fields[0].Path != c.field) {
				t.Fatalf("names %v, want %s", e.Fields, c.field)
			}
		})
	}
}

// TestCheckJSONAgreesWithTheDecoder compares the walk over bytes with encoding/json: what is valid, and what repeats a name.
func TestCheckJSONAgreesWithTheDecoder(t *testing.T) {
	piece := rapid.SampledFrom([]string{
		`{`, `}`, `[`, `]`, `,`, `:`, `"a":`, `"b":`, `"\u0061":`, `"a"`, `"\\"`, `"\"":`, `1`, `null`, ` `, `"":`, `"c":{}`, `,"a":[]`, `-`, `0`, `.5`, `e+1`, `E`,
		`"\u12"`, `"\x"`, "\"\t\"", "\n", `tru`, `true`, `false`, `"`, `\`, "é", "\u2028", "\v",
	})
	valid, repeating := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		var body []byte
		switch rapid.IntRange(0, 2).Draw(rt, "source") {
		case 0:
			body = []byte(strings.Join(rapid.SliceOfN(piece, 1, 6).Draw(rt, "pieces"), ""))
		case 1:
			body = []byte(randomJSON(rt, 4))
		default: // nearly valid
			body = []byte(randomJSON(rt, 4))
			at := rapid.IntRange(0, len(body)-1).Draw(rt, "at")
			body = append(append(body[:at:at], piece.Draw(rt, "piece")...), body[at+rapid.IntRange(0, 1).Draw(rt, "cut"):]...)
		}
		compare(rt, body, &valid, &repeating)
	})
	if valid == 0 || repeating == 0 {
		t.Errorf("%d valid, %d with a name twice: the test shows nothing", valid, repeating)
	}
}

func FuzzCheckJSON(f *testing.F) {
	for _, seed := range []string{`{"a":[1,-0.5e+3,"\u0041\n",true,null]}`, `{"a":1,"a":2}`, `[[],{}]`, `01`, `"\ud800"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var valid, repeating int
		compare(t, body, &valid, &repeating)
	})
}

func compare(t interface{ Fatalf(string, ...any) }, body []byte, valid, repeating *int) {
	err := checkJSON(body)
	if !utf8.Valid(body) || !json.Valid(body) {
		if err == nil {
			t.Fatalf("%q is no JSON and was taken", body)
		}
		return
	}
	*valid++
	want := tokensRepeat(body)
	if want {
		*repeating++
	}
	if got := err != nil && !strings.Contains(err.Error(), "levels deep"); got != want {
		t.Fatalf("%q: got %v, the decoder finds a name twice: %v", body, err, want)
	}
}

func randomJSON(t *rapid.T, depth int) string {
	name := rapid.SampledFrom([]string{`"a"`, `"b"`, `"\u0061"`, `"c\"d"`, `"e"`, `"f"`, `"g,"`, `"h}"`})
	var out []string
	switch kind := rapid.IntRange(0, 4).Draw(t, "kind"); {
	case kind >= 3 && depth > 0:
		for range rapid.IntRange(0, 20).Draw(t, "members") {
			out = append(out, name.Draw(t, "name")+" : "+randomJSON(t, depth-3))
		}
		return "{" + strings.Join(out, ",") + "}"
	case kind == 2 && depth > 0:
		for range rapid.IntRange(0, 3).Draw(t, "items") {
			out = append(out, randomJSON(t, depth-1))
		}
		return "[" + strings.Join(out, " ,") + "]"
	}
	return name.Draw(t, "text")
}

// tokensRepeat tells by encoding/json's tokens whether valid JSON names a member twice.
func tokensRepeat(body []byte) bool {
	d := json.NewDecoder(bytes.NewReader(body))
	repeats := false
	var value func()
	value = func() {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		switch token {
		case json.Delim('{'):
			seen := map[any]bool{}
			for d.More() {
				name, _ := d.Token()
				repeats = repeats || seen[name]
				seen[name] = true
				value()
			}
			_, _ = d.Token()
		case json.Delim('['):
			for d.More() {
				value()
			}
			_, _ = d.Token()
		}
	}
	value()
	return repeats
}

func BenchmarkCheckJSON(b *testing.B) {
	const function = `{"inputs":[{"internalType":"address","name":"to","type":"address"},{"internalType":"uint256","name":"amount","type":"uint256"}],` +
		`"name":"transfer","outputs":[{"internalType":"bool","name":"","type":"bool"}],"stateMutability":"nonpayable","type":"function"}`
	abi := `{"input":{"abi":[` + strings.Repeat(function+",", (150<<10)/len(function)) + function + `]}}`
	for name, body := range map[string]string{"small": `{"input":{"newValue":"1"},"options":{}}`, "abi150kB": abi} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if err := checkJSON([]byte(body)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
