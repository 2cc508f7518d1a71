package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/runlens/runlens/cmd/internal/harness"
	"github.com/runlens/runlens/olap/snapshot"
)

const (
	// queryFor is how long questions are sent between two changes.
	queryFor = 20 * time.Second
	// claimHolds is how long nobody takes over a refresh whose process is paused.
	claimHolds = 9 * time.Second
	// queriersPerServer query each server at once, fewer than its limit for an organization.
	queriersPerServer = 2
	// catchUpPatience is how long the refresher may take after the first load.
	catchUpPatience = 15 * time.Minute
)

// A trial holds the answers of two servers on one store against an oracle.
type trial struct {
	*soak
	stage
	stalled *staller // the third server
	random  *rand.Rand
	counts  classCounts
	crashes crashes
	inquiry inquiry

	phases, purges, serverKills int
	stored                      time.Time // after the last change, by the store's clock
}

// proveOracle sends random questions between random changes, whatever state the rollup is in. An answer that has a
// known strategy counts for it; of every strategy there have to be enough answers, all of them right.
func (s *soak) proveOracle(ctx context.Context) error {
	t := &trial{soak: s, random: rand.New(rand.NewPCG(s.Seed, 7)), counts: classCounts{of: map[string]*classCount{}}}
	t.author = newAuthor(s.Seed, time.Now().UTC().Truncate(24*time.Hour))
	t.inquiry = inquiry{truth: t.author, verdicts: &verdicts{of: map[string]verdict{}}, refused: &examples{},
		outcomes: &counts{}}
	t.inquiry.excused = func(a answer) bool { return a.status == 429 || t.crashes.excuse(a) }
	defer t.close()
	if err := t.open(ctx); err != nil {
		return err
	}
	ended, stop := context.WithCancel(ctx)
	var reporting sync.WaitGroup
	reporting.Go(func() { s.reportUntil(ended, func() string { return t.inquiry.outcomes.String() }) })
	err := t.run(ctx)
	stop()
	reporting.Wait()
	t.counts.report(s, s.Answers)
	s.none("questions that were refused or not answered", t.inquiry.refused)
	s.see("changes", "%d, of them %d purges; %d engines and %d servers killed", t.phases, t.purges, t.crashes.count(),
		t.serverKills)
	return err
}

// run changes and queries until there are enough answers of every strategy.
func (t *trial) run(ctx context.Context) error {
	for end := time.Now().Add(t.OracleFor); time.Now().Before(end) && ctx.Err() == nil; {
		lacking := t.counts.lacking(t.Answers)
		if len(lacking) == 0 {
			return nil
		}
		if err := t.phase(ctx, lacking); err != nil {
			return fmt.Errorf("phase %d, for %q: %w", t.phases, lacking[0], err)
		}
		for _, a := range t.servers {
			if err := a.follow(t); err != nil {
				return err
			}
		}
		t.phases++
		t.say("phase %d for %q; lacking: %s", t.phases, lacking[0], t.lack())
	}
	return ctx.Err()
}

func (t *trial) lack() string {
	var all []string
	least := demanded(t.Answers)
	for _, class := range t.counts.lacking(t.Answers) {
		all = append(all, fmt.Sprintf("%s × %d", class, t.counts.lacks(class, least[class])))
	}
	return strings.Join(all, "; ")
}

// phase brings the store into the state that the rarest class needs, and sends questions.
func (t *trial) phase(ctx context.Context, lacking []string) error {
	disturbed := t.phases%5 == 4 // the engine dies while questions are answered
	if t.phases%7 == 6 {
		if err := t.restart(ctx, t.phases/7%len(t.servers)); err != nil {
			return err
		}
	}
	if t.phases%6 == 5 {
		if err := t.purge(ctx); err != nil {
			return fmt.Errorf("purge: %w", err)
		}
	}
	length := queryFor
	switch rarest := lacking[0]; {
	case strings.Contains(rarest, "delta cached"):
		t.stalled.pause()
		if err := t.change(ctx, false); err != nil {
			return err
		}
	case strings.Contains(rarest, "delta inline"):
		t.stalled.pause()
		if err := t.change(ctx, true); err != nil {
			return err
		}
	case rarest == refreshingClass:
		length, disturbed = claimHolds, false
		if err := t.stallRefresh(ctx); err != nil {
			return err
		}
	case strings.Contains(rarest, "delta none"):
		if t.random.IntN(3) == 0 {
			if err := t.change(ctx, false); err != nil {
				return err
			}
		}
		if err := t.catchUp(ctx, time.Minute); err != nil {
			return err
		}
	default:
		if err := t.change(ctx, t.random.IntN(4) == 0); err != nil {
			return err
		}
	}
	t.queryAll(ctx, lacking, length, disturbed)
	t.stalled.resume()
	return nil
}

// change stores random records of every organization, many of the main one or a few, and kills the engine meanwhile
// now and then. They are ingested or pushed, in turns, and some of them contradict what was stored: whoever asks when
// that has ended is to be answered as if they did not.
func (t *trial) change(ctx context.Context, many bool) error {
	n := t.random.IntN
	contradictions := t.phases / 2 % 2 * n(20)
	batches := []batch{{mainOrganization, 2, n(300), n(500), n(200), n(300), contradictions}}
	if many {
		// A changed run is two rows of the delta, and 20,000 rows are sent with a statement at most.
		batches[0] = batch{mainOrganization, 2, 1500, 12_000, 500, 21_000, contradictions}
	}
	for _, organization := range smallOrganizations {
		batches = append(batches, batch{organization, 1, n(100), n(60), n(60), n(100), contradictions})
	}
	if t.phases%4 == 3 {
		killed := time.AfterFunc(time.Duration(t.random.IntN(700))*time.Millisecond, t.killEngine)
		defer killed.Stop()
	}
	var err error
	if t.phases%2 == 0 {
		err = t.ingest(ctx, batches...)
	} else {
		err = t.push(ctx, t.servers[n(len(t.servers))], batches...)
	}
	if err != nil {
		return err
	}
	return t.readClock(ctx)
}

func (t *trial) killEngine() {
	t.crashes.add(time.Now())
	if err := t.store.product.KillEngine(); err != nil {
		t.say("no engine was killed: %v", err)
	}
}

// readClock takes note of the store's clock after a change.
func (t *trial) readClock(ctx context.Context) error {
	return t.store.patiently(ctx, func() error {
		server, err := t.store.open(ctx)
		if err != nil {
			return err
		}
		now, err := snapshot.Now(ctx, server.Conn())
		t.stored = now
		return err
	})
}

// watermark reads how far the rollup has come; the zero one while the engine is away.
func (t *trial) watermark(ctx context.Context) (state snapshot.Log) {
	if server, err := t.store.open(ctx); err == nil {
		state, _ = snapshot.ReadLog(ctx, server.Conn())
	}
	return state
}

// catchUp waits until everything stored is in the rollup.
func (t *trial) catchUp(ctx context.Context, patience time.Duration) error {
	t.stalled.resume()
	if !harness.Poll(ctx, patience, refreshPoll, func() bool {
		state := t.watermark(ctx)
		return len(state.Damaged) == 0 && !state.Until.Before(t.stored)
	}) {
		return errors.Join(fmt.Errorf("the rollup did not catch up within %s", patience), ctx.Err())
	}
	return nil
}

// stallRefresh has a refresh begin and stops its process in the middle of it, if it is still on by then.
func (t *trial) stallRefresh(ctx context.Context) error {
	t.stalled.pause()
	if err := t.change(ctx, true); err != nil {
		return err
	}
	t.stalled.resume()
	for deadline := time.Now().Add(queryFor); time.Now().Before(deadline); {
		if t.watermark(ctx).Refreshing {
			break
		}
		if !harness.Pause(ctx, enginePoll) {
			return ctx.Err()
		}
	}
	t.stalled.pause()
	return nil
}

// open starts the servers and stores the first records.
func (t *trial) open(ctx context.Context) error {
	server, err := t.stage.open(ctx, t.soak)
	if err != nil {
		return err
	}
	t.stalled = &staller{server: server}
	t.say("loads %d runs and as many attribution records", t.OracleRuns)
	if err := t.ingest(ctx, batch{organization: mainOrganization, agents: 200, runs: t.OracleRuns,
		attributions: t.OracleRuns}); err != nil {
		return err
	}
	if err := t.change(ctx, false); err != nil {
		return err
	}
	t.say("waits until the rollup has them")
	if err := t.catchUp(ctx, catchUpPatience); err != nil {
		return err
	}
	for _, organization := range append([]string{mainOrganization}, smallOrganizations...) {
		if err := t.admit(ctx, organization); err != nil {
			return err
		}
	}
	return nil
}

func (t *trial) close() {
	if t.stalled != nil {
		t.stalled.resume()
		t.stalled.server.Stop()
	}
	t.stage.close()
}
