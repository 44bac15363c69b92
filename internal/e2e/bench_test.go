package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pactwire/pactwire/contracts"
	"github.com/pactwire/pactwire/internal/chaintest"
	"github.com/pactwire/pactwire/internal/pgtest"
)

const clients = 64

// load has the clients send the same request b.N times in all.
func load(b *testing.B, clients int, url, body string, header http.Header) {
	b.Helper()
	b.ResetTimer()
	taken := send(b, clients, b.N, url, body, header)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "req/s")
	reportLatency(b, taken)
}

// number in a body stands for a number that no other request has.
const number = "<number>"

// send has the clients send the same request n times in all, but for the number in its body, and fails on any answer but 200, 202 and 304. It returns the times that the calls took, in ascending order.
func send(b *testing.B, clients, requests int, url, body string, header http.Header) []time.Duration {
	b.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: clients, DisableCompression: true}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	var left atomic.Int64
	left.Store(int64(requests))
	var sending sync.WaitGroup
	taken := make([][]time.Duration, clients)
	for n := range clients {
		sending.Go(func() {
			for at := left.Add(-1); at >= 0; at = left.Add(-1) {
				body := strings.Replace(body, number, strconv.FormatInt(at+1, 10), 1)
				began := time.Now()
				method := http.MethodGet
				if body != "" {
					method = http.MethodPost
				}
				r, err := http.NewRequest(method, url, strings.NewReader(body))
				if err != nil {
					b.Error(err)
					return
				}
				r.Header = header
				response, err := client.Do(r)
				if err != nil {
					b.Error(err)
					return
				}
				answer, err := io.ReadAll(response.Body)
				response.Body.Close()
				// A node's refusal is an answer with 200 too.
				if err != nil || response.StatusCode >= 400 || bytes.HasPrefix(answer, []byte(`{"jsonrpc":"2.0","id":1,"error"`)) {
					b.Errorf("%s answered %d: %.200s %v", url, response.StatusCode, answer, err)
					return
				}
				taken[n] = append(taken[n], time.Since(began))
			}
		})
	}
	sending.Wait()
	all := slices.Concat(taken...)
	slices.Sort(all)
	return all
}

// reportLatency reports the median and the 99th percentile.
func reportLatency(b *testing.B, taken []time.Duration) {
	b.Helper()
	if len(taken) == 0 {
		return
	}
	slices.Sort(taken)
	b.ReportMetric(float64(taken[len(taken)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(taken[len(taken)*99/100].Microseconds()), "p99-µs")
}

// BenchmarkQuery compares a query through the service with the same call sent to the same node directly over HTTP.
func BenchmarkQuery(b *testing.B) {
	s := start(b)
	address := s.chain.Deploy(b, contracts.SimpleStorage()).Hex()
	iface := s.broadcast(b, "storage", "1", contracts.SimpleStorage().ABI)
	s.createAPI(b, "simple", *iface.ID, &address)
	js := http.Header{"Content-Type": {"application/json"}}
	direct := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"eth_call","params":[{"to":"%s","data":"0x6d4ce63c"},"latest"]}`, address)
	for _, n := range []int{1, clients} {
		b.Run(fmt.Sprintf("node/%d", n), func(b *testing.B) { load(b, n, s.chain.HTTPURL(), direct, js) })
		b.Run(fmt.Sprintf("service/%d", n), func(b *testing.B) {
			load(b, n, s.url+"/api/v1/namespaces/default/apis/simple/query/get", `{}`, js)
		})
	}
}

// BenchmarkInvoke measures invokes of one key: "confirmed" waits for each one's outcome in its call, "accepted" only for its acceptance, but the clock stops when the
// last one has been told as succeeded to an application. The chain is reached, and garbage collected, as in pactwire dev.
func BenchmarkInvoke(b *testing.B) {
	defer debug.SetGCPercent(debug.SetGCPercent(200))
	s := startService(b, &service{chain: chaintest.New(b), attached: true}, pgtest.New(b))
	address := s.chain.Deploy(b, contracts.SimpleStorage()).Hex()
	iface := s.broadcast(b, "storage", "1", contracts.SimpleStorage().ABI)
	s.createAPI(b, "simple", *iface.ID, &address)
	js := http.Header{"Content-Type": {"application/json"}}
	url, body := s.url+"/api/v1/namespaces/default/apis/simple/invoke/set", `{"input":{"newValue":`+number+`}}`
	for _, n := range []int{1, clients} {
		b.Run(fmt.Sprintf("confirmed/%d", n), func(b *testing.B) {
			before := s.chain.Head()
			load(b, n, url+"?confirm=true", body, js)
			b.ReportMetric(float64(b.N)/float64(s.chain.Head()-before), "tx/block")
		})
		b.Run(fmt.Sprintf("accepted/%d", n), func(b *testing.B) {
			before := s.chain.Head()
			outcomes := s.connect(b, "namespace=default&ephemeral&autoack&filter.events=blockchain_invoke_op_succeeded")
			load(b, n, url, body, js)
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "accepted/s")
			for range b.N {
				outcomes.event(b)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "req/s")
			b.ReportMetric(float64(b.N)/float64(s.chain.Head()-before), "tx/block")
		})
	}
}

// BenchmarkPending measures what 10,000 operations that are not mined cost: memory, and the time to accept another one.
func BenchmarkPending(b *testing.B) {
	s := start(b)
	address := s.chain.Deploy(b, contracts.SimpleStorage()).Hex()
	iface := s.broadcast(b, "storage", "1", contracts.SimpleStorage().ABI)
	s.createAPI(b, "simple", *iface.ID, &address)
	js := http.Header{"Content-Type": {"application/json"}}
	url, body := s.url+"/api/v1/namespaces/default/apis/simple/invoke/set", `{"input":{"newValue":`+number+`}}`
	s.chain.SetAutomine(false)
	heap := func() float64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc) / (1 << 20)
	}
	for b.Loop() {
		few := send(b, 1, 500, url, body, js)
		before := heap()
		send(b, clients, 10_000, url, body, js)
		b.ReportMetric(heap()-before, "MB")
		many := send(b, 1, 500, url, body, js)
		b.ReportMetric(float64(few[len(few)/2].Microseconds()), "p50-few-µs")
		b.ReportMetric(float64(many[len(many)/2].Microseconds()), "p50-many-µs")
	}
}

// BenchmarkDocument measures the OpenAPI document of a contract API: from the cache, and when the caller has it already.
func BenchmarkDocument(b *testing.B) {
	s := start(b)
	iface := s.broadcast(b, "zoo", "1", contracts.Zoo().ABI)
	s.createAPI(b, "zoo", *iface.ID, nil)
	url := s.url + "/api/v1/namespaces/default/apis/zoo/api/swagger.json"
	r, err := http.Get(url)
	must(b, err)
	r.Body.Close()
	b.Run("cached", func(b *testing.B) { load(b, clients, url, "", http.Header{}) })
	b.Run("notmodified", func(b *testing.B) { load(b, clients, url, "", http.Header{"If-None-Match": {r.Header.Get("ETag")}}) })
}

// BenchmarkGenerate measures an interface from an ABI of 150 kB, one caller after the other.
func BenchmarkGenerate(b *testing.B) {
	s := start(b)
	// The zoo again and again: overloads, tuples, errors.
	var entries []json.RawMessage
	must(b, json.Unmarshal(contracts.Zoo().ABI, &entries))
	var abi strings.Builder
	for i := 0; abi.Len() < 150_000; i++ {
		entry := entries[i%len(entries)]
		if i >= len(entries) && (bytes.Contains(entry, []byte(`"constructor"`)) || bytes.Contains(entry, []byte(`"fallback"`)) || bytes.Contains(entry, []byte(`"receive"`))) {
			continue
		}
		abi.WriteByte(',')
		abi.Write(bytes.Replace(entry, []byte(`"name":"`), fmt.Appendf(nil, `"name":"n%d`, i/len(entries)), 1))
	}
	body := `{"input":{"abi":[` + abi.String()[1:] + `]}}`
	b.SetBytes(int64(len(body)))
	load(b, 1, s.url+"/api/v1/namespaces/default/contracts/interfaces/generate", body, http.Header{"Content-Type": {"application/json"}})
}
