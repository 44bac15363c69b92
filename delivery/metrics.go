package delivery

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	delivered, acks, moves, dead prometheus.Counter
	feeds                        prometheus.Gauge
}

func newMetrics(r prometheus.Registerer) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Namespace: "pactwire", Subsystem: "delivery", Name: name, Help: help})
	}
	m := &metrics{
		delivered: counter("events_total", "Events written to applications, redeliveries included."),
		acks:      counter("acks_total", "Events acknowledged."),
		moves:     counter("position_writes_total", "Writes of the position of a durable subscription."),
		dead:      counter("dead_letters_total", "Events that a webhook did not take in spite of all tries."),
		feeds: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: "pactwire", Subsystem: "delivery", Name: "subscriptions", Help: "Subscriptions with a connected application.",
		}),
	}
	if r != nil {
		r.MustRegister(m.delivered, m.acks, m.moves, m.dead, m.feeds)
	}
	return m
}
