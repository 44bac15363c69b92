package e2e

import (
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/pactwire/pactwire/gen"
)

// 64 clients invoke with one key while replicas are killed. Who gets no answer asks again, with the same idempotency key: every accepted invocation is mined
// exactly once.
func TestInvokesSurviveSuddenDeaths(t *testing.T) {
	if testing.Short() {
		t.Skip("starts the program several times")
	}
	invokes := 300
	if os.Getenv("PACTWIRE_TEST_LONG") != "" {
		invokes = 2000
	}
	for _, replicas := range []int{1, 2} {
		t.Run(fmt.Sprintf("%d replicas", replicas), func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, replicas)
			accepted := c.invokeAndKill(invokes)
			c.allSucceeded(accepted)
			logs, err := c.chain.Client().FilterLogs(t.Context(), ethereum.FilterQuery{Addresses: []common.Address{c.storage}, FromBlock: big.NewInt(0)})
			must(t, err)
			seen := map[uint64]int{}
			for _, l := range logs {
				seen[new(big.Int).SetBytes(l.Data).Uint64()]++
			}
			for v := range uint64(invokes) {
				if seen[v] != 1 {
					t.Errorf("the value %d was set %d times", v, seen[v])
				}
			}
			if len(logs) != invokes || len(accepted) != invokes {
				t.Errorf("%d values were set on the chain, and %d invocations accepted; want %d", len(logs), len(accepted), invokes)
			}
		})
	}
}

// invokeAndKill sets the values 0 … n-1, and kills each replica once on the way. It returns the operations.
func (c *cluster) invokeAndKill(n int) map[uuid.UUID]bool {
	var mu sync.Mutex
	accepted := map[uuid.UUID]bool{}
	var count atomic.Int64
	values := make(chan int)
	var calling sync.WaitGroup
	transport := &http.Transport{MaxIdleConnsPerHost: clients}
	defer transport.CloseIdleConnections()
	caller := &http.Client{Transport: transport, Timeout: 20 * time.Second}
	for i := range clients {
		calling.Go(func() {
			for v := range values {
				for try := i; ; try++ {
					id, ok := c.tryInvoke(caller, c.replicas[try%len(c.replicas)], v)
					if ok {
						mu.Lock()
						accepted[id] = true
						mu.Unlock()
						count.Add(1)
						break
					}
					time.Sleep(20 * time.Millisecond) // an application's own pause before it tries again
				}
			}
		})
	}
	var killing sync.WaitGroup
	killing.Go(func() {
		for i, r := range c.replicas {
			at := int64(n * (i + 1) / (len(c.replicas) + 1))
			for deadline := time.Now().Add(time.Minute); count.Load() < at && time.Now().Before(deadline); {
				time.Sleep(time.Millisecond) // a poll with a deadline
			}
			r.kill()
			r.begin()
			r.awaitReady()
		}
	})
	for v := range n {
		values <- v
	}
	close(values)
	calling.Wait()
	killing.Wait()
	return accepted
}

func (c *cluster) tryInvoke(caller *http.Client, r *replica, v int) (id uuid.UUID, ok bool) {
	client, err := gen.NewClientWithResponses("http://"+r.listen+"/api/v1", gen.WithHTTPClient(caller))
	if err != nil {
		return id, false
	}
	answer, err := client.InvokeContractAPIWithResponse(c.t.Context(), ns, "simple", "set", &gen.InvokeContractAPIParams{IdempotencyKey: ptr(fmt.Sprintf("value-%d", v))},
		gen.InvokeRequest{Input: json.RawMessage(fmt.Sprintf(`{"newValue":%d}`, v))})
	if err != nil || answer.JSON202 == nil {
		return id, false
	}
	return answer.JSON202.ID, true
}

// allSucceeded waits for the end of the operations.
func (c *cluster) allSucceeded(operations map[uuid.UUID]bool) {
	client, err := gen.NewClientWithResponses("http://" + c.replicas[0].listen + "/api/v1")
	must(c.t, err)
	for id := range operations {
		eventually(c.t, time.Minute, "operation "+id.String()+" ends", func() bool {
			r, err := client.GetOperationWithResponse(c.t.Context(), ns, id)
			must(c.t, err)
			if r.JSON200 == nil || r.JSON200.Status == "Failed" {
				c.t.Fatalf("operation %s: %s", id, r.Body)
			}
			return r.JSON200.Status == "Succeeded"
		}, c.replicas[0].output)
	}
}
