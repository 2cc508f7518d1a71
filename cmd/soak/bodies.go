package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/runlens/runlens/cmd/internal/harness"
)

const (
	// honestPatience is the longest time that an honest request may take during an attack and after it.
	honestPatience = time.Second
	honestPause    = 100 * time.Millisecond
	honestAfter    = 20 // requests after each attack

	// restPatience is how long a server may take to close what an attack left behind.
	restPatience = 30 * time.Second
	// restSlack is how many more descriptors it may keep than before: connections to the engine that are kept for
	// later.
	restSlack = 16
)

// largestBody is a question with the largest legal filters: 8 of 50 values of 200 characters, each written as an
// escaped surrogate pair of 12 bytes. The filters of different numbers, from 0 to 2^20-1, have no value in common.
func largestBody(of question, number int) []byte {
	var q strings.Builder
	q.WriteString(strings.TrimSuffix(string(of.body()), "}") + `,"filters":[`)
	opening := fmt.Sprintf(`"\ud83d\u%04x\ud83d\u%04x`, 0xdc00+number%1024, 0xdc00+number/1024)
	for f := range maxFilters {
		if f > 0 {
			q.WriteByte(',')
		}
		q.WriteString(`{"member":"user_identifier","op":"in","values":[`)
		for v := range maxValues {
			if v > 0 {
				q.WriteByte(',')
			}
			// The values differ in their last character.
			q.WriteString(opening + strings.Repeat(`\ud83d\ude00`, maxLength-3) +
				fmt.Sprintf(`\ud83d\u%04x"`, 0xdc00+f*maxValues+v))
		}
		q.WriteString(`]}`)
	}
	q.WriteString(`]}`)
	return []byte(q.String())
}

// smallQuestion is an honest question.
var smallQuestion = question{Model: "agent_runs", Metrics: []string{"run_count"}, Range: january}

var smallBody = smallQuestion.body()

var january = dateRange{"2026-01-01", "2026-01-31", "UTC"}

// proveBodies attacks with as many connections as configured: memory stays within its bound, an honest request
// from the same address is answered within a second, and afterwards the descriptors are those from before.
func (s *soak) proveBodies(ctx context.Context) error {
	t, err := s.start(ctx)
	if err != nil {
		return err
	}
	defer t.close()
	honest, err := t.client(ctx, "honest")
	if err != nil {
		return err
	}
	crowd, err := t.client(ctx, "crowd")
	if err != nil {
		return err
	}
	body := largestBody(smallQuestion, 0)
	if !json.Valid(body) {
		return fmt.Errorf("the largest body is no JSON")
	}
	s.see("the largest legal request", "%d bytes", len(body))
	for range honestAfter { // so that what is opened once is open
		if _, err := honest.query(ctx, smallBody); err != nil {
			return err
		}
	}
	for _, attack := range bodyAttacks(t.server.Address, crowd.key, body, s.HoldFor) {
		if err := s.attackBodies(ctx, t, honest.hasty(), attack); err != nil {
			return fmt.Errorf("%s: %w", attack.name, err)
		}
	}
	return nil
}

// attackBodies runs one attack during honest requests.
func (s *soak) attackBodies(ctx context.Context, t *target, honest *client, attack bodyAttack) error {
	s.say("%d connections: %s", s.Connections, attack.name)
	before, err := t.descriptors(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	crowd := &crowd{address: t.server.Address, size: s.Connections}
	done := make(chan struct{})
	go func() {
		defer close(done)
		crowd.run(ctx, attack)
	}()
	during := s.queryHonestly(ctx, honest, func(int) bool {
		select {
		case <-done:
			return false
		default:
			return true
		}
	})
	<-done
	after := s.queryHonestly(ctx, honest, func(n int) bool { return n < honestAfter })
	peak := t.memory.peak(began)
	named := func(what string) string { return attack.name + ": " + what }
	s.see(named("connections"), "%s", &crowd.outcomes)
	s.hold(named("memory of serve"), size(peak), "at most "+size(s.MemoryBound*mib), peak <= s.MemoryBound*mib)
	s.none(named("answers outside the contract"), &crowd.breaches)
	s.holdHonest(named("honest requests during it"), during)
	s.holdHonest(named("honest requests after it"), after)
	open := t.restingDescriptors(ctx, before+restSlack)
	s.hold(named("descriptors before and after"), fmt.Sprintf("%d, then %d", before, open),
		fmt.Sprintf("at most %d", before+restSlack), open >= 0 && open <= before+restSlack)
	return t.alive()
}

// honestly is what was seen of honest requests.
type honestly struct {
	took     latencies
	failures examples
}

// queryHonestly sends small questions, each over a new connection, as long as it should go on.
func (s *soak) queryHonestly(ctx context.Context, c *client, goOn func(n int) bool) *honestly {
	var h honestly
	for n := 0; goOn(n) && ctx.Err() == nil; n++ {
		a, err := c.query(ctx, smallBody)
		switch {
		case err != nil:
			h.failures.add("%v after %s", err, time.Since(a.sent).Round(time.Millisecond))
		case a.status != http.StatusOK || a.breach() != "":
			h.failures.add("%d: %s %s", a.status, a.breach(), a.body)
		default:
			h.took.add(a.took())
		}
		harness.Pause(ctx, honestPause)
	}
	return &h
}

// holdHonest adds that all were answered with 200 within a second.
func (s *soak) holdHonest(what string, h *honestly) {
	slowest := h.took.quantile(1)
	s.hold(what, fmt.Sprintf("%d answered in %s at most, %d not", len(h.took.all), slowest, h.failures.count()),
		"all within "+honestPatience.String(), h.failures.count() == 0 && slowest > 0 && slowest <= honestPatience)
	for _, failure := range h.failures.first() {
		s.report.notes.Add("%s, %s: %s", s.part, what, failure)
	}
}

// restingDescriptors waits until the server has at most so many files open, or for restPatience, and returns how many
// they are; -1 when the admin address does not tell.
func (t *target) restingDescriptors(ctx context.Context, most int64) (open int64) {
	harness.Poll(ctx, restPatience, time.Second/4, func() bool {
		var err error
		if open, err = t.descriptors(ctx); err != nil {
			open = -1
		}
		return open <= most
	})
	return open
}
