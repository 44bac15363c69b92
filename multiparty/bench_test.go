package multiparty

import (
	"encoding/json"
	"sync/atomic"
	"testing"
)

// BenchmarkBroadcast measures small messages from many clients until they are confirmed, on a chain and a database of this machine.
func BenchmarkBroadcast(b *testing.B) {
	w := newWorld(b)
	w.register(b, 1, "alice")
	p := w.join(b, 1, "alice")
	b.SetParallelism(64)
	var n atomic.Int64
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			m, err := p.BroadcastMessage(b.Context(), MessageInput{Data: []json.RawMessage{json.RawMessage(`{"small":"message"}`)}})
			if err == nil {
				err = p.WaitConfirmed(b.Context(), m.ID)
			}
			if err != nil {
				b.Error(err)
				return
			}
			n.Add(1)
		}
	})
	b.ReportMetric(float64(n.Load())/b.Elapsed().Seconds(), "messages/s")
}

// BenchmarkOneBroadcast measures how long one broadcast takes to be confirmed when nothing else is going on.
func BenchmarkOneBroadcast(b *testing.B) {
	w := newWorld(b)
	w.register(b, 1, "alice")
	p := w.join(b, 1, "alice")
	for b.Loop() {
		m := p.say(b, `"hello"`)
		if err := p.WaitConfirmed(b.Context(), m.ID); err != nil {
			b.Fatal(err)
		}
	}
}
