package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/runlens/runlens/cmd/internal/harness"
)

// organizations are those of the sample data. Each sends queries with as many clients as it may run queries at once.
var organizations = []string{"acme", "globex", "initech", "umbrella"}

const clientsPerOrganization = 4

// proveRanges sends random legal questions about any year in any zone: every one is answered within the deadline and
// memory stays flat.
func (s *soak) proveRanges(ctx context.Context) error {
	t, err := s.start(ctx)
	if err != nil {
		return err
	}
	defer t.close()
	until := time.Now().UTC().Truncate(time.Hour)
	if err := t.loadSample(ctx, until); err != nil {
		return err
	}
	zones, err := readZones()
	if err != nil {
		return err
	}
	var queriers []*querier
	a := &queried{zones: map[string]bool{}}
	for i := range len(organizations) * clientsPerOrganization {
		c, err := t.client(ctx, organizations[i%len(organizations)])
		if err != nil {
			return err
		}
		models, err := c.catalog(ctx)
		if err != nil {
			return err
		}
		g := newGenerator(s.Seed, i, models, zones, until)
		queriers = append(queriers, &querier{client: c, generate: g.anywhere, queried: a, allow: legalOnly})
	}
	s.say("%d clients send queries for %s", len(queriers), s.RangesFor)
	began := time.Now()
	end, cancel := context.WithDeadline(ctx, began.Add(s.RangesFor))
	defer cancel()
	var wait sync.WaitGroup
	for _, querier := range queriers {
		wait.Go(func() { querier.run(ctx, end, t) })
	}
	s.reportUntil(end, func() string {
		return fmt.Sprintf("%s; memory %s", &a.outcomes, size(t.memory.now()))
	})
	wait.Wait()
	s.reportQueried(a, len(zones))
	at := func(share float64) time.Time { return began.Add(time.Duration(share * float64(s.RangesFor))) }
	warm, last := t.memory.between(at(0.25), at(0.4)), t.memory.between(at(0.85), at(1))
	s.flat("memory of serve after warm-up and at the end", median(warm, serverMemory), median(last, serverMemory), 32*mib)
	s.flat("memory of the engine after warm-up and at the end",
		median(warm, engineMemory), median(last, engineMemory), 128*mib)
	return t.alive()
}

// reportUntil reports progress every ten seconds until ctx is done.
func (s *soak) reportUntil(ctx context.Context, text func() string) {
	tick := time.NewTicker(10 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.say("%s", text())
		}
	}
}

// loadSample stores the sample data that ends at a time.
func (t *target) loadSample(ctx context.Context, until time.Time) error {
	t.soak.say("loads sample data")
	file := filepath.Join(t.dir, "sample.ndjson")
	defer os.Remove(file)
	command := exec.CommandContext(ctx, "go", "run", "./cmd/sampledata",
		"--until", until.Format(time.RFC3339), "--out", file)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("sampledata: %w: %s", err, out)
	}
	_, err := t.ingest(ctx, file)
	return err
}

// queried is what was seen of questions by all queriers.
type queried struct {
	outcomes   counts
	took       latencies
	breaches   examples
	unanswered examples
	lock       sync.Mutex
	zones      map[string]bool
}

func (s *soak) reportQueried(a *queried, zones int) {
	s.see("answers", "%s", &a.outcomes)
	if zones > 0 {
		s.see("zones queried", "%d of %d", len(a.zones), zones)
	}
	s.none("answers outside the contract", &a.breaches)
	s.none("questions without an answer", &a.unanswered)
	slowest := a.took.quantile(1)
	s.see("median / 99th percentile", "%s / %s", a.took.quantile(0.5), a.took.quantile(0.99))
	s.hold("slowest answer", slowest.String(), "at most "+deadline.String(), slowest > 0 && slowest <= deadline)
}

// refusedPause keeps clients from querying at full speed where they are refused.
const refusedPause = 50 * time.Millisecond

// A querier sends one question after the other.
type querier struct {
	client   *client
	generate func() question
	queried  *queried
	// allow says what a refusal of a legal question breaks, or is empty.
	allow func(question, answer) string
}

// run sends questions until end is done, and ends a question at ctx.
func (k *querier) run(ctx, end context.Context, t *target) {
	defer k.client.rest()
	for end.Err() == nil && t.alive() == nil {
		for q, more := k.generate(), true; more && end.Err() == nil; {
			q, more = k.step(ctx, q)
		}
	}
}

// step sends a question, judges the answer and returns the question of the next page, if there is one.
func (k *querier) step(ctx context.Context, q question) (next question, more bool) {
	k.queried.lock.Lock()
	k.queried.zones[q.Range.Timezone] = true
	k.queried.lock.Unlock()
	a, err := k.client.query(ctx, q.body())
	if err != nil {
		if ctx.Err() == nil {
			k.queried.outcomes.add("none")
			k.queried.unanswered.add("%v, after %s: %s", err, time.Since(a.sent).Round(time.Millisecond), shorten(q))
		}
		return q, false
	}
	k.queried.took.add(a.took())
	k.queried.outcomes.add(a.outcome())
	breach := a.breach()
	switch {
	case breach != "":
	case a.status != http.StatusOK:
		breach = k.allow(q, a)
		harness.Pause(ctx, refusedPause)
	default:
		p, err := q.check(a.body)
		if err == nil && p.Cursor != nil {
			q.Cursor = *p.Cursor
			return q, len(p.Rows) > 0
		}
		if err != nil {
			breach = fmt.Sprintf("200 with %v", err)
		}
	}
	if breach != "" {
		k.queried.breaches.add("%s: %s", breach, shorten(q))
	}
	return q, false
}

// legalOnly is for questions of the whole calendar: 429 where there is too much to do, and refusals of what RFC 3339
// cannot write.
func legalOnly(q question, a answer) string {
	r, err := a.refusal()
	if a.status == http.StatusTooManyRequests || err == nil && q.mayRefuse(r) {
		return ""
	}
	return fmt.Sprintf("%d: %s", a.status, a.body)
}

// shorten names a question in an example.
func shorten(q question) string {
	return fmt.Sprintf("%s to %s in %s: %.300s", q.Range.Start, q.Range.End, q.Range.Timezone, q.body())
}
