package multiparty

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
)

func TestCanonical(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{
		{` { "b" : 1 , "a" : [ true , null , false ] } `, `{"a":[true,null,false],"b":1}`},
		{`{}`, `{}`},
		{`[]`, `[]`},
		{`[ ]`, `[]`},
		{`""`, `""`},
		{`123456789012345678901234567890.10e+05`, `123456789012345678901234567890.10e+05`},
		{`-0`, `-0`},
		{`"\u0041\/\u00e9\u20ac"`, `"A/é€"`},
		{`"\u0000\u001F\u007f\b\t\n\f\r\"\\"`, `"\u0000\u001f` + "\x7f" + `\b\t\n\f\r\"\\"`},
		{`"\ud83d\ude02"`, `"😂"`},
		{`"<>&\u2028"`, "\"<>&\u2028\""},
		// The example of RFC 8785, section 3.2.3.
		{
			`{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}`,
			`{"\r":"Carriage Return","1":"One","` + "\u0080" + `":"Control","ö":"Latin Small Letter O With Diaeresis","€":"Euro Sign","😀":"Emoji: Grinning Face","` + "\ufb33" + `":"Hebrew Letter Dalet With Dagesh"}`,
		},
		{`{"a":{"d":[{"z":1,"y":2}],"c":3},"":0}`, `{"":0,"a":{"c":3,"d":[{"y":2,"z":1}]}}`},
	} {
		got, err := Canonical([]byte(c.in))
		if err != nil || string(got) != c.want {
			t.Errorf("Canonical(%s)\n got %s, %v\nwant %s", c.in, got, err, c.want)
		}
	}
}

func TestCanonicalRefuses(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		``, ` `, `{`, `[`, `"`, `"\`, `"\u12`, `tru`, `nul`, `01`, `-`, `1.`, `1e`, `1e+`, `.5`, `+1`, `0x1`, `NaN`, `[1,]`, `[,1]`, `[1 2]`, `{"a"}`, `{"a":}`,
		`{"a":1,}`, `{,}`, `{a:1}`, `{"a":1 "b":2}`, `1 2`, `{"a":1,"a":2}`, `{"b":1,"a":1,"\u0061":2}`, `"\ud83d"`, `"\ud83dx"`, `"\ude02\ud83d"`, `"\ud83d\u0041"`, `"\x"`,
		"\"\xff\"", "\"a\nb\"", "\"\x00\"", "\x00", strings.Repeat("[", 102) + strings.Repeat("]", 102), strings.Repeat("[", 1<<20),
	} {
		if got, err := Canonical([]byte(in)); !errors.Is(err, errJSON) {
			t.Errorf("Canonical(%.40q) = %.40q, %v", in, got, err)
		}
	}
}

func FuzzCanonical(f *testing.F) {
	for _, seed := range []string{`{"b":1,"a":[1.0,"x\u00e9\ud83d\ude02",null]}`, `"\u0000"`, `[{"":{}}]`, `{"a":1,"A":2,"\u20ac":3}`, `-1.5e-7`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		out, err := Canonical(text)
		if err != nil {
			return
		}
		if !json.Valid(text) || !json.Valid(out) {
			t.Fatalf("accepted %q, which is not JSON, or gave %q", text, out)
		}
		again, err := Canonical(out)
		if err != nil || !bytes.Equal(again, out) {
			t.Fatalf("%q becomes %q, which becomes %q, %v", text, out, again, err)
		}
		if !reflect.DeepEqual(decodeNumbers(t, text), decodeNumbers(t, out)) {
			t.Fatalf("%q and %q do not mean the same", text, out)
		}
	})
}

func decodeNumbers(t *testing.T, text []byte) (v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}
