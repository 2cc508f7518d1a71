package main

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/runlens/runlens/cmd/internal/process"
)

const (
	samplePeriod = 50 * time.Millisecond
	// runaway is the memory at which a server is killed before it takes the machine with it.
	runaway = 4 << 30
	mib     = 1 << 20
)

// A sample is the resident memory at one time, in bytes.
type sample struct {
	at             time.Time
	server, engine int64
}

// A memoryWatch samples the memory of a server and of its engine until it is stopped.
type memoryWatch struct {
	lock    sync.Mutex
	samples []sample
	ran     bool // a runaway server was killed
	quit    chan struct{}
	done    chan struct{}
}

func watchMemory(t *target) *memoryWatch {
	w := &memoryWatch{quit: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(w.done)
		tick := time.NewTicker(samplePeriod)
		defer tick.Stop()
		for {
			select {
			case <-w.quit:
				return
			case <-tick.C:
				w.take(t)
			}
		}
	}()
	return w
}

func (w *memoryWatch) take(t *target) {
	s := sample{at: time.Now()}
	s.server, _ = process.Resident(t.server.PID()) // 0 once it is gone
	if engine, err := t.product.Engine(); err == nil {
		s.engine, _ = process.Resident(engine.PID)
	}
	w.lock.Lock()
	defer w.lock.Unlock()
	w.samples = append(w.samples, s)
	if s.server > runaway && !w.ran {
		w.ran = true
		t.soak.say("the server takes %s: killed", size(s.server))
		t.server.Kill()
	}
}

func (w *memoryWatch) stop() {
	close(w.quit)
	<-w.done
}

// between are the samples of a span of time, both ends inclusive.
func (w *memoryWatch) between(from, to time.Time) []sample {
	w.lock.Lock()
	defer w.lock.Unlock()
	var in []sample
	for _, s := range w.samples {
		if !s.at.Before(from) && !s.at.After(to) {
			in = append(in, s)
		}
	}
	return in
}

// peak is the most memory of the server since a time.
func (w *memoryWatch) peak(from time.Time) (most int64) {
	for _, s := range w.between(from, time.Now()) {
		most = max(most, s.server)
	}
	return most
}

// now is the memory of the server at present.
func (w *memoryWatch) now() int64 { return w.peak(time.Now().Add(-4 * samplePeriod)) }

func serverMemory(s sample) int64 { return s.server }
func engineMemory(s sample) int64 { return s.engine }

// median is the median of one process's memory, 0 without samples.
func median(samples []sample, of func(sample) int64) int64 {
	if len(samples) == 0 {
		return 0
	}
	values := make([]int64, len(samples))
	for i, s := range samples {
		values[i] = of(s)
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// flat adds whether memory at the end is what it was before, but for a quarter and a slack in bytes.
func (s *soak) flat(what string, before, after, slack int64) {
	bound := before + before/4 + slack
	s.hold(what, fmt.Sprintf("%s, then %s", size(before), size(after)), "at most "+size(bound),
		before > 0 && after > 0 && after <= bound)
}

func size(bytes int64) string { return fmt.Sprintf("%d MiB", bytes/mib) }
