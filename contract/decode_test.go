package contract_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/contract"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func word(n byte) string { return strings.Repeat("00", 31) + hex.EncodeToString([]byte{n}) }

func TestOutputNames(t *testing.T) {
	tests := []struct{ outputs, want string }{
		{`[]`, `{}`},
		{`[{"name":"","type":"uint8"}]`, `{"output":"1"}`},
		{`[{"name":"total","type":"uint8"}]`, `{"output":"1"}`},
		{`[{"name":"","type":"uint8"},{"name":"","type":"uint8"},{"name":"","type":"uint8"}]`, `{"output":"1","output1":"2","output2":"3"}`},
		{`[{"name":"a","type":"uint8"},{"name":"","type":"uint8"},{"name":"b","type":"uint8"}]`, `{"a":"1","output1":"2","b":"3"}`},
		{`[{"name":"","type":"uint8"},{"name":"output","type":"uint8"},{"name":"output","type":"uint8"}]`, `{"output_":"1","output":"2","output2":"3"}`},
	}
	for _, test := range tests {
		c := compileABI(t, `[{"type":"function","name":"f","inputs":[],"outputs":`+test.outputs+`}]`)
		m, err := c.Method("f")
		if err != nil {
			t.Fatal(err)
		}
		out, err := m.DecodeOutput(unhex(t, word(1)+word(2)+word(3)))
		if err != nil || string(out) != test.want {
			t.Errorf("%s gives %s, %v; want %s", test.outputs, out, err, test.want)
		}
	}
}

func TestDecodeOutputRefusals(t *testing.T) {
	value := methodOf(t, `[{"name":"x","type":"uint8"}]`)
	_, err := value.DecodeOutput(nil)
	wantField(t, err, "location.address", "no such contract")
	ones := strings.Repeat("ff", 32)
	tests := []struct{ typ, data string }{
		{"uint8", word(1)[:62]},
		{"uint8", ones},
		{"uint24", ones},
		{"int8", word(128)},
		{"int8", "ff" + strings.Repeat("00", 31)},
		{"bool", word(2)},
		{"string", word(32)},
		{"string", ones + ones},
		{"string", word(32) + ones},
		{"string", word(32) + word(33) + word(1)},
		{"string", word(64) + word(0)},
		{"bytes", strings.Repeat("00", 24) + "7fffffffffffffff" + word(1)},
		{"uint8[]", word(32) + word(2) + word(1)},
		{"uint8[]", word(32) + strings.Repeat("00", 24) + "7fffffffffffffff"},
		{"uint8[0][]", word(32) + strings.Repeat("00", 28) + "7fffffff"},
		{"function", ones},
	}
	for _, test := range tests {
		out, err := methodOf(t, `[{"name":"x","type":"`+test.typ+`"}]`).DecodeOutput(unhex(t, test.data))
		if pactwire.KindOf(err) != pactwire.KindBadUpstream {
			t.Errorf("%s of %s: %.100s, %v; want a bad-upstream error", test.typ, test.data, out, err)
		}
	}
}

// Text of the chain can be anything; what we write must be JSON that PostgreSQL stores.
func TestDecodeHostileText(t *testing.T) {
	m := methodOf(t, `[{"name":"x","type":"string"}]`)
	text := "a\x00\xff\"\\\n\r\t\x01é\xf0\x9f\x98\x80\xed\xa0\x80\u2028<"
	data := append(unhex(t, word(32)+word(byte(len(text)))), text...)
	data = append(data, make([]byte, 64-len(text)%32)...)
	out, err := m.DecodeOutput(data)
	if err != nil {
		t.Fatal(err)
	}
	var answer struct{ Output string }
	if err := json.Unmarshal(out, &answer); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	if want := "a\ufffd\ufffd\"\\\n\r\t\x01é😀\ufffd\ufffd\ufffd\u2028<"; answer.Output != want {
		t.Errorf("text is %q, want %q", answer.Output, want)
	}
	if bytes.Contains(out, []byte(`\u0000`)) || bytes.IndexByte(out, 0) >= 0 {
		t.Errorf("%q holds a NUL", out)
	}
}

// All elements of all levels point to the same place: read naively, a few kilobytes stand for 2^40 values.
func TestDecodeSharedOffsetsIsBounded(t *testing.T) {
	m := methodOf(t, `[{"name":"x","type":"uint8[][][][][][][][]"}]`)
	var data []byte
	data = append(data, unhex(t, word(32))...)
	const n = 32
	for range 8 { // each level: n offsets to the next level, which follows
		data = append(data, unhex(t, word(n))...)
		for range n {
			offset := make([]byte, 32)
			offset[30], offset[31] = byte(n*32>>8), byte(n*32&0xff)
			data = append(data, offset...)
		}
	}
	data = append(data, make([]byte, 64*32)...)
	begin := time.Now()
	_, err := m.DecodeOutput(data)
	if pactwire.KindOf(err) != pactwire.KindBadUpstream {
		t.Errorf("error is %v", err)
	}
	if spent := time.Since(begin); spent > 5*time.Second {
		t.Errorf("took %s", spent)
	}
}

func TestDecodeLog(t *testing.T) {
	c := compileABI(t, `[{"type":"event","name":"Transfer","inputs":[
		{"name":"from","type":"address","indexed":true},{"name":"to","type":"address","indexed":true},{"name":"","type":"uint256"}]},
		{"type":"event","name":"Note","anonymous":true,"inputs":[{"name":"text","type":"string","indexed":true},{"name":"text","type":"string"}]}]`)
	transfer, err := c.Event("Transfer")
	if err != nil {
		t.Fatal(err)
	}
	from, to := common.HexToHash("0x01"), common.HexToHash("0x02")
	if want := common.HexToHash("0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"); transfer.Topic0 != want {
		t.Errorf("topic is %s", transfer.Topic0)
	}
	out, err := transfer.DecodeLog([]common.Hash{transfer.Topic0, from, to}, unhex(t, word(9)))
	want := `{"from":"0x0000000000000000000000000000000000000001","to":"0x0000000000000000000000000000000000000002","2":"9"}`
	if err != nil || string(out) != want {
		t.Errorf("log is %s, %v", out, err)
	}
	for name, topics := range map[string][]common.Hash{
		"another event": {from, from, to}, "ERC-721": {transfer.Topic0, from, to, to}, "none": {}, "too few": {transfer.Topic0, from},
	} {
		if _, err := transfer.DecodeLog(topics, unhex(t, word(9))); !errors.Is(err, contract.ErrMismatch) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := transfer.DecodeLog([]common.Hash{transfer.Topic0, from, to}, nil); pactwire.KindOf(err) != pactwire.KindBadUpstream {
		t.Errorf("short data: %v", err)
	}

	note, err := c.Event("Note(string,string)")
	if err != nil {
		t.Fatal(err)
	}
	out, err = note.DecodeLog([]common.Hash{from}, unhex(t, word(32)+word(1)+"61"+strings.Repeat("00", 31)))
	if err != nil || string(out) != `{"text":"`+from.Hex()+`","1":"a"}` {
		t.Errorf("log is %s, %v", out, err)
	}
	if note.Topic0 != (common.Hash{}) || !note.Anonymous || note.NumIndexed != 1 {
		t.Errorf("event is %+v", note)
	}
}
