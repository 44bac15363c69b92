package ws_test

import (
	"bytes"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/pactwire/pactwire/internal/pgtest"
	"github.com/pactwire/pactwire/store"
)

// benchBody makes an event's frame some 830 bytes long, which is what a transfer of a token has.
var benchBody = `{"id":"6f1f0c3c-9c1e-4f1e-8a57-0d9b1f3a0c11","source":"ethereum","namespace":"default","name":"Changed",` +
	`"listener":"6f1f0c3c-9c1e-4f1e-8a57-0d9b1f3a0c11","protocolId":"000000000012/000000/000000","output":{"from":"0x91d2b4381a4cd5c7c0f27565a7d4b829844c8635","x":"1"},` +
	`"info":{"address":"0xa5ea5d0a6b2eaf194716f0cc73981939dca26da1","blockNumber":"12","logIndex":"0","pad":"` + strings.Repeat("x", 100) + `"},"timestamp":"2026-01-01T00:00:00Z","tx":{"type":""}}`

func (n *node) fill(count int) {
	for count > 0 {
		events := make([]store.Event, min(count, 1000))
		for i := range events {
			events[i] = store.Event{
				Namespace: "default", Type: store.EventBlockchainReceived, Reference: store.NewID(), BodyKey: store.BodyBlockchainEvent, Body: benchBody,
			}
		}
		n.appendEvents(events)
		count -= len(events)
	}
}

// eventID cuts the id out of a frame: the consumer should cost little beside the service.
func eventID(frame []byte) []byte {
	i := bytes.Index(frame, []byte(`"id":"`)) + 6
	return frame[i : i+36]
}

// BenchmarkReplay reads stored history through one connection, every event acknowledged by a frame of its own, as FireFly's client does.
func BenchmarkReplay(b *testing.B) {
	for _, readAhead := range []int{1, 50, 500} {
		b.Run(fmt.Sprintf("readAhead=%d", readAhead), func(b *testing.B) {
			n := newNode(b, pgtest.New(b))
			sub := n.subscribe("sub", "", fmt.Sprintf(`{"firstEvent":"oldest","readAhead":%d}`, readAhead))
			n.fill(b.N)
			b.ResetTimer()
			dialer := websocket.Dialer{ReadBufferSize: 64 << 10, WriteBufferSize: 4096, NetDial: net.Dial}
			socket, _, err := dialer.Dial("ws"+strings.TrimPrefix(n.http.URL, "http")+"/ws?namespace=default&name=sub", nil)
			if err != nil {
				b.Fatal(err)
			}
			defer socket.Close()
			var size int
			var ack []byte
			for range b.N {
				_, frame, err := socket.ReadMessage()
				if err != nil {
					b.Fatal(err)
				}
				size = len(frame)
				ack = fmt.Appendf(ack[:0], `{"type":"ack","id":"%s","subscription":{"id":"%s","name":"sub","namespace":"default"}}`, eventID(frame), sub.ID)
				if err := socket.WriteMessage(websocket.TextMessage, ack); err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
			b.ReportMetric(float64(size), "bytes/frame")
			eventually(b, "the position is kept", func() bool { return n.position("sub") == int64(b.N) })
		})
	}
}

// BenchmarkLive measures from the commit of an event to its frame at the client.
func BenchmarkLive(b *testing.B) {
	n := newNode(b, pgtest.New(b))
	n.subscribe("sub", "", `{"readAhead":50}`)
	c := n.dial("/ws?namespace=default&name=sub")
	var taken []time.Duration
	b.ResetTimer()
	for range b.N {
		n.fill(1)
		begin := time.Now()
		f := c.next()
		taken = append(taken, time.Since(begin))
		c.ack(f)
	}
	b.StopTimer()
	slices.Sort(taken)
	b.ReportMetric(float64(taken[len(taken)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(taken[len(taken)*99/100].Microseconds()), "p99-µs")
}
