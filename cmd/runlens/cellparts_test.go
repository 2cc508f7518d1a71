package main

import (
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// A waitingPart is collected once all of them are being collected.
type waitingPart struct {
	prometheus.Gauge
	met *sync.WaitGroup
}

func (p waitingPart) Collect(out chan<- prometheus.Metric) {
	p.met.Done()
	p.met.Wait()
	p.Gauge.Collect(out)
}

// The parts of a cell are asked at the same time: a silent ClickHouse costs a scrape the patience of one, not that
// of all, which Prometheus does not have.
func TestPartsOfACellAreCollectedTogether(t *testing.T) {
	var met sync.WaitGroup
	var parts []prometheus.Collector
	for _, name := range []string{"a", "b", "c"} {
		met.Add(1)
		parts = append(parts, waitingPart{prometheus.NewGauge(prometheus.GaugeOpts{Name: name}), &met})
	}
	c := &cell{name: oneCell}
	c.opened.Store(&openCell{metrics: parts})
	out := make(chan prometheus.Metric, len(parts))
	done := make(chan struct{})
	go func() {
		c.collector().Collect(out)
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("a part waits for another one")
	}
	if len(out) != len(parts) {
		t.Errorf("%d metrics, want %d", len(out), len(parts))
	}
}
