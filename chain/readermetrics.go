package chain

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

type readerMetrics struct {
	nextBlock, listeners, rangeSize    prometheus.Gauge
	events, removed, reorgs, undecoded prometheus.Counter
	nodeErrors, setAside               *prometheus.CounterVec
	hidden                             prometheus.Counter
}

func newReaderMetrics(chain string, watch *headWatch, registerer prometheus.Registerer) *readerMetrics {
	labels := prometheus.Labels{"chain": chain}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "pactwire", Subsystem: "reader", Name: name, Help: help, ConstLabels: labels})
	}
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Namespace: "pactwire", Subsystem: "reader", Name: name, Help: help, ConstLabels: labels})
	}
	m := &readerMetrics{
		nextBlock: gauge("next_block", "The first block that the live part has not recorded."),
		listeners: gauge("listeners", "Listeners of the chain."),
		rangeSize: gauge("range_blocks", "Blocks that a log fetch of catch-up asks for."),
		events:    counter("events_total", "Blockchain events recorded."),
		removed:   counter("events_removed_total", "Recorded blockchain events whose block was reorganised away."),
		reorgs:    counter("reorganisations_total", "Reorganisations that reached recorded blocks."),
		undecoded: counter("undecodable_logs_total", "Logs of a listener's event whose data does not fit it."),
		nodeErrors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "pactwire", Subsystem: "reader", Name: "node_errors_total", Help: "Answers of the node that were refusals or made no sense, by kind.",
			ConstLabels: labels,
		}, []string{"kind"}),
		setAside: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "pactwire", Subsystem: "reader", Name: "nodes_set_aside_total", Help: "Nodes that were set aside for a while, by reason.",
			ConstLabels: labels,
		}, []string{"reason"}),
		hidden: counter("hidden_logs_total", "Logs that the node left out of its answers and that a block's receipts showed."),
	}
	still := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: "pactwire", Subsystem: "reader", Name: "head_still_seconds", Help: "Time since the chain's head was last seen to move.", ConstLabels: labels,
	}, func() float64 { return watch.stillFor(time.Now()).Seconds() })
	if registerer != nil {
		registerer.MustRegister(m.nextBlock, m.listeners, m.rangeSize, m.events, m.removed, m.reorgs, m.undecoded, m.nodeErrors, m.setAside, m.hidden, still)
	}
	return m
}
