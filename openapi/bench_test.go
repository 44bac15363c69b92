package openapi_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/pactwire/pactwire/openapi"
)

// BenchmarkBuild builds the document of an interface that an ABI of 150 kB gives.
func BenchmarkBuild(b *testing.B) {
	var entries []entry
	order := []entry{
		{"name": "maker", "type": "address", "internalType": "address"},
		{"name": "amount", "type": "uint256", "internalType": "uint256"},
		{"name": "kind", "type": "uint8", "internalType": "enum Market.Kind"},
	}
	for size := 0; size < 150<<10; {
		n := len(entries)
		e := entry{
			"type": "function", "name": fmt.Sprintf("method%d", n), "stateMutability": []string{"view", "nonpayable", "payable"}[n%3],
			"inputs": []entry{
				{"name": "to", "type": "address", "internalType": "address"},
				{"name": "amount", "type": "uint256", "internalType": "uint256"},
				{"name": "orders", "type": "tuple[]", "internalType": "struct Market.Order[]", "components": order},
			},
			"outputs": []entry{{"name": "", "type": "bool", "internalType": "bool"}},
		}
		text, err := json.Marshal(e)
		if err != nil {
			b.Fatal(err)
		}
		size += len(text)
		entries = append(entries, e)
	}
	abi, err := json.Marshal(entries)
	if err != nil {
		b.Fatal(err)
	}
	s := subject(b, "big", abi, false)
	b.ReportAllocs()
	for b.Loop() {
		body, err := openapi.Build(s)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(body)))
	}
}
