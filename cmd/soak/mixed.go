package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/runlens/runlens/cmd/internal/harness"
)

const (
	// crashWindow is how long after the engine was killed a request in flight may be answered with 500.
	crashWindow = 20 * time.Second
	// idlePatience is how long a server may take to be idle when the load pauses.
	idlePatience = 30 * time.Second

	goroutineSlack = 10
)

// A mixture is everything that goes on at once in the part mixed.
type mixture struct {
	*soak
	target  *target
	crashes crashes
	queried queried

	refusals     counts // answers to what must be refused, by outcome
	wrongRefusal examples
	keyChanges   counts
	wrongKey     examples
	kills        examples
	copies       copies
}

// proveMixed loads the server with everything at once, and kills its engine again and again: no answer leaves the
// contract, acknowledged records are all there, and at the end the process holds what it held after the first minute.
func (s *soak) proveMixed(ctx context.Context) error {
	t, err := s.start(ctx)
	if err != nil {
		return err
	}
	defer t.close()
	m := &mixture{soak: s, target: t, queried: queried{zones: map[string]bool{}}}
	loads, err := m.loads(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	first := min(time.Minute, s.MixedFor/2)
	m.runFor(ctx, first, loads)
	early, err := m.idleVitals(ctx, vitals{})
	if err != nil {
		return err
	}
	s.say("after %s: %s", first, early)
	m.runFor(ctx, s.MixedFor-first, loads)
	late, err := m.idleVitals(ctx, early)
	if err != nil {
		return err
	}
	s.say("after %s: %s", time.Since(began).Round(time.Second), late)
	m.reportMixed(ctx)
	s.hold("goroutines after the first minute and at the end",
		fmt.Sprintf("%d, then %d", early.goroutines, late.goroutines),
		fmt.Sprintf("at most %d", early.goroutines+goroutineSlack), late.goroutines <= early.goroutines+goroutineSlack)
	s.hold("descriptors after the first minute and at the end",
		fmt.Sprintf("%d, then %d", early.descriptors, late.descriptors),
		fmt.Sprintf("at most %d", early.descriptors+restSlack), late.descriptors <= early.descriptors+restSlack)
	s.flat("memory of serve after the first minute and at the end", early.memory, late.memory, 32*mib)
	return t.alive()
}

// A load is one of the things that go on. It ends soon after end is done, and at once when ctx is.
type load func(ctx, end context.Context)

// loads prepares data and keys.
func (m *mixture) loads(ctx context.Context) ([]load, error) {
	until := time.Now().UTC().Truncate(time.Hour)
	if err := m.target.loadSample(ctx, until); err != nil {
		return nil, err
	}
	zones, err := readZones()
	if err != nil {
		return nil, err
	}
	var loads []load
	for i, organization := range organizations {
		c, err := m.target.client(ctx, organization)
		if err != nil {
			return nil, err
		}
		models, err := c.catalog(ctx)
		if err != nil {
			return nil, err
		}
		g := newGenerator(m.Seed, i, models, zones, until)
		k := &querier{client: c, generate: g.recent, queried: &m.queried, allow: m.allow}
		loads = append(loads, func(ctx, end context.Context) { k.run(ctx, end, m.target) })
	}
	refused, err := readRefused()
	if err != nil {
		return nil, err
	}
	c, err := m.target.client(ctx, "refused")
	if err != nil {
		return nil, err
	}
	random := rand.New(rand.NewPCG(m.Seed, uint64(len(loads))))
	return append(loads,
		func(ctx, end context.Context) { m.sendRefused(ctx, end, c, refused, random) },
		func(_, end context.Context) { m.crashes.killEvery(end, m.KillEvery, m.target.product, &m.kills) },
		m.sendMalformed, m.changeKeys, m.ingest), nil
}

// runFor runs all loads for a time.
func (m *mixture) runFor(ctx context.Context, length time.Duration, loads []load) {
	m.runLoads(ctx, length, loads, func() string {
		return fmt.Sprintf("%s; %d kills, %d runs acknowledged; memory %s",
			&m.queried.outcomes, m.crashes.count(), m.copies.acknowledged(), size(m.target.memory.now()))
	})
}

// runLoads runs loads for a time and reports progress.
func (s *soak) runLoads(ctx context.Context, length time.Duration, loads []load, progress func() string) {
	s.say("%d loads for %s", len(loads), length)
	end, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	var wait sync.WaitGroup
	for _, run := range loads {
		wait.Go(func() { run(ctx, end) })
	}
	s.reportUntil(end, progress)
	wait.Wait()
}

// allow permits, of legal questions, 429 and what a killed engine excuses.
func (m *mixture) allow(_ question, a answer) string {
	if a.status == http.StatusTooManyRequests || m.crashes.excuse(a) {
		return ""
	}
	return fmt.Sprintf("%d: %s", a.status, a.body)
}

func (m *mixture) reportMixed(ctx context.Context) {
	m.reportQueried(&m.queried, 0)
	m.see("engines killed", "%d", m.crashes.count())
	m.see("last 500 after a kill", "to a request sent %s later; %s is allowed",
		m.crashes.outage().Round(time.Millisecond), crashWindow)
	m.none("engines that could not be killed", &m.kills)
	m.see("what must be refused", "%s", &m.refusals)
	m.none("refusals outside the contract", &m.wrongRefusal)
	m.see("key changes", "%s", &m.keyChanges)
	m.none("keys that were taken or refused wrongly", &m.wrongKey)
	m.see("ingest runs", "%s", &m.copies.outcomes)
	counted, err := m.countCopies(ctx)
	if err != nil {
		m.miss("acknowledged runs are counted", err.Error())
		return
	}
	acknowledged := m.copies.acknowledged()
	m.hold("acknowledged runs", fmt.Sprint(counted), fmt.Sprint(acknowledged), counted == acknowledged && acknowledged > 0)
}

// vitals are what the process holds.
type vitals struct{ goroutines, descriptors, memory int64 }

func (v vitals) String() string {
	return fmt.Sprintf("%d goroutines, %d descriptors, %s", v.goroutines, v.descriptors, size(v.memory))
}

// lower is the lower one of both, of each number.
func (v vitals) lower(w vitals) vitals {
	return vitals{min(v.goroutines, w.goroutines), min(v.descriptors, w.descriptors), min(v.memory, w.memory)}
}

// idleVitals reads the vitals while nothing sends queries: the least within idlePatience, or the first ones that are
// not above the bound.
func (m *mixture) idleVitals(ctx context.Context, bound vitals) (vitals, error) {
	var least vitals
	for until := time.Now().Add(idlePatience); ; {
		values, err := m.target.server.Metrics(ctx, "go_goroutines", "process_open_fds")
		if err != nil {
			return least, err
		}
		now := time.Now()
		memory := median(m.target.memory.between(now.Add(-2*time.Second), now), serverMemory)
		v := vitals{int64(values[0]), int64(values[1]), memory}
		if least == (vitals{}) {
			least = v
		}
		least = least.lower(v)
		if least.lower(bound) == least || now.After(until) {
			return least, nil
		}
		if !harness.Pause(ctx, time.Second) {
			return least, ctx.Err()
		}
	}
}
