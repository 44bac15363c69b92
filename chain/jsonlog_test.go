package chain

import (
	"encoding/json"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
)

const oneLog = `{"address":"0x5FbDB2315678afecb367f032d93F642f64180aa3","topics":["0x0000000000000000000000000000000000000000000000000000000000000001",
	"0x0000000000000000000000000000000000000000000000000000000000000002"],"data":"0x00ff","blockNumber":"0x1a","extra":{"a":[1,"}",{"b":"\"]"}]},
	"transactionHash":"0x0000000000000000000000000000000000000000000000000000000000000003","transactionIndex":"0x4",
	"blockHash":"0x0000000000000000000000000000000000000000000000000000000000000005","blockTimestamp":"0x6","logIndex":"0x7","removed":false}`

// FuzzLogs holds our reading of logs against go-ethereum's: what it takes, we take alike; nothing panics.
func FuzzLogs(f *testing.F) {
	for _, seed := range []string{
		`[]`, ` [ ] `, `null`, `{}`, `[` + oneLog + `]`, `[` + oneLog + `,` + oneLog + `]`, `[null]`, `[[]]`, `[{"a":1}]`, `["x"]`, `[{"address":"0x"}]`, `[1,2]`, `[{"":-1.5e3}]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var page logPage
		ours := json.Unmarshal(text, &page)
		var head blockHead
		_ = json.Unmarshal(text, &head)
		if ours != nil {
			return
		}
		var theirs []types.Log
		if json.Unmarshal(text, &theirs) != nil || len(theirs) != len(page.logs) {
			return // it refuses leading zeros and more
		}
		for i, l := range theirs {
			if have := page.logs[i]; have.address != l.Address || len(have.topics) != len(l.Topics) || uint64(have.block) != l.BlockNumber ||
				have.blockHash != l.BlockHash || have.txHash != l.TxHash || uint64(have.index) != uint64(l.Index) || string(have.data) != string(l.Data) {
				t.Errorf("log %d: %+v, want %+v", i, have, l)
			}
		}
	})
}

func TestLogsAreRead(t *testing.T) {
	t.Parallel()
	var page logPage
	if err := json.Unmarshal([]byte(`[`+oneLog+`, `+oneLog+`]`), &page); err != nil || len(page.logs) != 2 {
		t.Fatalf("%d logs, %v", len(page.logs), err)
	}
	l := page.logs[1]
	if l.block != 26 || l.index != 7 || l.txIndex != 4 || len(l.topics) != 2 || l.topics[1][31] != 2 || string(l.data) != "\x00\xff" || l.blockHash[31] != 5 {
		t.Errorf("%+v", l)
	}
	for _, wrong := range []string{`null`, `{}`, `[{}]`, `[{"address":"0x12"}]`, `[null]`, `"x"`} {
		if json.Unmarshal([]byte(wrong), &page) == nil {
			t.Errorf("%s is taken", wrong)
		}
	}
}
