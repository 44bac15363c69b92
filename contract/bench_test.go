package contract_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/pactwire/pactwire/contract"
)

// bigABI is an ABI of about 150 kB with tuples and overloads, as the largest real contracts have.
func bigABI() []byte {
	var b strings.Builder
	b.WriteString(simpleABI[:strings.LastIndex(simpleABI, "]")])
	for i := 0; b.Len() < 150_000; i++ {
		fmt.Fprintf(&b, `,{"inputs":[{"internalType":"struct Pool.Order","name":"order","type":"tuple","components":[
			{"internalType":"address","name":"maker","type":"address"},{"internalType":"uint256[]","name":"amounts","type":"uint256[]"}]},
			{"internalType":"bytes","name":"data","type":"bytes"}],"name":"fill%d","outputs":[{"internalType":"uint256","name":"","type":"uint256"}],"stateMutability":"nonpayable","type":"function"},
			{"anonymous":false,"inputs":[{"indexed":true,"internalType":"address","name":"maker","type":"address"},{"indexed":false,"internalType":"uint256","name":"amount","type":"uint256"}],"name":"Filled","type":"event"}`, i/2)
	}
	b.WriteString("]")
	return []byte(b.String())
}

func BenchmarkFromABI(b *testing.B) {
	text := bigABI()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := contract.FromABI(text); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	iface, err := contract.FromABI(bigABI())
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := contract.Compile(iface); err != nil {
			b.Fatal(err)
		}
	}
}

func benchmarkRoundTrip(b *testing.B, inputs, input string) {
	m := methodOf(b, inputs)
	b.ReportAllocs()
	for b.Loop() {
		data, err := m.Encode(json.RawMessage(input))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := m.DecodeOutput(data[4:]); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSimple(b *testing.B) {
	benchmarkRoundTrip(b, `[{"name":"to","type":"address"},{"name":"amount","type":"uint256"}]`,
		`{"to":"0x5FbDB2315678afecb367f032d93F642f64180aa3","amount":"1000000000000000000000"}`)
}

func BenchmarkNested(b *testing.B) {
	benchmarkRoundTrip(b, orderInputs,
		`{"order":{"id":77,"items":[`+strings.Repeat(`{"sku":"a longer text that takes more than one word","price":9},`, 19)+`{"sku":"","price":0}]},"1":true,"2":false}`)
}

func BenchmarkDecodeLog(b *testing.B) {
	event, err := compileABI(b, simpleABI).Event("Changed")
	if err != nil {
		b.Fatal(err)
	}
	topics, data := []common.Hash{event.Topic0, common.HexToHash("0x5fbdb2315678afecb367f032d93f642f64180aa3")}, make([]byte, 32)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := event.DecodeLog(topics, data); err != nil {
			b.Fatal(err)
		}
	}
}
