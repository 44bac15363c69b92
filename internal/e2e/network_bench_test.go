package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
)

// BenchmarkNetwork measures a network of three processes on one machine, with one chain: how long a broadcast takes until all three have confirmed it, how many
// go through in a second, and how fast a late joiner catches up.
//
//	go test ./internal/e2e -run '^$' -bench Network -benchtime 1x
func BenchmarkNetwork(b *testing.B) {
	alice := startNetwork(b)
	bob, carol := alice.join(b, "bob", 2, "--log-level", "warn"), alice.join(b, "carol", 3, "--log-level", "warn")
	alice.register(b, bob, "bob")
	alice.register(b, carol, "carol")
	alice.say(b, "warm", `1`, true)
	members := []*service{&alice.service, &bob.service, &carol.service}

	for b.Loop() {
		times := everywhere(b, alice, members, 200)
		b.ReportMetric(float64(times[len(times)/2].Microseconds())/1000, "p50-ms")
		b.ReportMetric(float64(times[len(times)*99/100].Microseconds())/1000, "p99-ms")

		const messages, callers = 10_000, 64
		before := carol.confirmedMessages(b)
		busy := carol.cpu(b)
		began := time.Now()
		flood(b, alice.url, messages, callers)
		accepted := time.Since(began)
		for _, s := range members {
			s.reaches(b, before+messages)
		}
		b.ReportMetric(messages/accepted.Seconds(), "accepted/s")
		b.ReportMetric(messages/time.Since(began).Seconds(), "confirmed/s")
		b.ReportMetric((carol.cpu(b)-busy).Seconds()*1000/messages, "cpu-ms/received")

		began = time.Now()
		dave := alice.join(b, "dave", 4, "--log-level", "warn")
		dave.reaches(b, before+messages)
		b.ReportMetric(time.Since(began).Seconds(), "late-join-s")
		dave.interrupt(b)
	}
}

// reaches waits until the member has so many messages. Counting costs the machine something: it does not look often.
func (s *service) reaches(b *testing.B, want int64) {
	b.Helper()
	for deadline := time.Now().Add(3 * time.Minute); s.confirmedMessages(b) < want; time.Sleep(250 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.Fatalf("it has %d messages of %d", s.confirmedMessages(b), want)
		}
	}
}

// cpu is the processor time that the process has used, where the system tells it: a steadier figure than rates on a busy machine.
func (p *process) cpu(b *testing.B) time.Duration {
	b.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	var ticks int64
	for _, f := range fields[11:13] { // user and system
		n, err := strconv.ParseInt(f, 10, 64)
		must(b, err)
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// everywhere measures, for n broadcasts one after the other, how long each took until the last of the members had told its application.
func everywhere(b *testing.B, from *founder, members []*service, n int) []time.Duration {
	b.Helper()
	sockets := make([]socket, len(members))
	for i, s := range members {
		sockets[i] = s.connect(b, "namespace=default&ephemeral&autoack&filter.events=message_confirmed")
	}
	times := make([]time.Duration, 0, n)
	for i := range n {
		began := time.Now()
		sent := from.say(b, "latency", fmt.Sprint(i), false)
		var group sync.WaitGroup
		for _, s := range sockets {
			group.Go(func() { s.await(b, sent.Header.ID) })
		}
		group.Wait()
		times = append(times, time.Since(began))
	}
	slices.Sort(times)
	return times
}

func (c socket) await(b *testing.B, message uuid.UUID) {
	for {
		if e := c.event(b); e.Reference == message {
			return
		}
	}
}

// flood sends small messages from many callers at once.
func flood(b *testing.B, url string, messages, callers int) {
	b.Helper()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: callers}}
	next := make(chan int)
	var group sync.WaitGroup
	for range callers {
		group.Go(func() {
			for i := range next {
				body := fmt.Sprintf(`{"header":{"tag":"bench","topics":["t%d"]},"data":[{"value":{"n":%d}}]}`, i%10, i)
				r, err := client.Post(url+"/api/v1/namespaces/default/messages/broadcast", "application/json", bytes.NewReader([]byte(body)))
				if err != nil {
					b.Error(err)
					continue
				}
				_, _ = io.Copy(io.Discard, r.Body)
				r.Body.Close()
				if r.StatusCode != http.StatusAccepted {
					b.Errorf("answered %s", r.Status)
				}
			}
		})
	}
	for i := range messages {
		next <- i
	}
	close(next)
	group.Wait()
	client.CloseIdleConnections()
}
