package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/runlens/runlens/cmd/internal/trap"
)

// A prey is something that goes on in a store while its engine is killed.
type prey interface {
	// points are the points at which the engine is killed, in the order in which they are tried.
	points() []trap.Point
	// prepare makes a cycle ready. What it stores is stored when it returns.
	prepare(ctx context.Context, cycle string) error
	// strike works under a set trap, and then without it until what was interrupted is complete. It reports whether
	// the trap killed the engine at its point.
	strike(ctx context.Context, set *trap.Trap) (hit bool, err error)
	// check compares what is stored with what must be.
	check(ctx context.Context) ([]finding, error)
	// close ends what the prey runs.
	close()
}

// A finding is what is wrong with the records of a cycle.
type finding struct {
	cycle                    string // empty if unknown
	lost, doubled, differing int
	what                     string
}

// A hunt is one kind of prey.
type hunt struct {
	name  string
	share float64 // of the kills
	lanes int     // stores at once: where a killed process is waited for, more of them wait at the same time
	group int     // kills after which a store is checked and replaced by an empty one
	new   func(*killStore) (prey, error)
}

// hunts share the kills. A purge that lost its engine leaves a claim, which the next one waits for, and damage, which a
// server repairs.
var hunts = []hunt{
	{"ingest", 0.32, 1, 40, newIngestPrey},
	{"worker", 0.26, 1, 40, newWorkerPrey},
	{"refresh", 0.26, 1, 25, newRefreshPrey},
	{"purge", 0.16, 8, 10, newPurgePrey},
}

const (
	// patienceOfCycle is how long a cycle may take: a claim that was left is waited for once or twice.
	patienceOfCycle = 8 * time.Minute
	// missesFor bounds how many cycles may pass without a kill, for each kill that is wanted.
	missesFor = 3
)

// proveKills kills the engine at chosen points of ingest, worker, refresh and purge. Whatever was acknowledged is
// there once, what was interrupted is complete when it is run again, and the rollup equals the base tables without a
// rebuild by hand. Where processes cannot be traced, the part is skipped.
func (s *soak) proveKills(ctx context.Context) error {
	if err := trap.Able(ctx); errors.Is(err, trap.ErrUnable) {
		s.say("skipped: %v", err)
		s.see("skipped", "%v", err)
		return nil
	} else if err != nil {
		return err
	}
	tallies := &tallies{of: map[string]*tally{}}
	var lanes sync.WaitGroup
	failures := make(chan error, len(hunts)*8)
	chosen := slices.DeleteFunc(slices.Clone(hunts), func(h hunt) bool {
		return len(s.KillsOf) > 0 && !slices.Contains(s.KillsOf, h.name)
	})
	whole := 0.0
	for _, h := range chosen {
		whole += h.share
	}
	for _, h := range chosen {
		wanted := &quota{left: int(math.Ceil(h.share / whole * float64(s.Kills)))}
		wanted.tries = (missesFor + 1) * wanted.left
		for n := range min(h.lanes, wanted.left) {
			lanes.Go(func() {
				l := &killLane{soak: s, hunt: h, n: n, wanted: wanted, tallies: tallies}
				if err := l.run(ctx); err != nil && ctx.Err() == nil {
					failures <- fmt.Errorf("%s: %w", h.name, err)
				}
			})
		}
	}
	ended, stop := context.WithCancel(ctx)
	go func() {
		lanes.Wait()
		stop()
	}()
	s.reportUntil(ended, func() string { return fmt.Sprintf("%d of %d kills", tallies.kills(), s.Kills) })
	lanes.Wait()
	close(failures)
	tallies.report(s, s.Kills)
	var all []error
	for err := range failures {
		all = append(all, err)
	}
	return errors.Join(all...)
}

// A quota is how many kills are still wanted of a hunt. Its lanes share it.
type quota struct {
	lock  sync.Mutex
	left  int
	tries int
	next  int // of the points
}

// take returns the number of the next point to try, while kills are wanted.
func (q *quota) take() (point int, more bool) {
	q.lock.Lock()
	defer q.lock.Unlock()
	if q.left <= 0 || q.tries <= 0 {
		return 0, false
	}
	q.tries--
	q.left--
	q.next++
	return q.next - 1, true
}

// missed gives back a kill that was taken and did not happen.
func (q *quota) missed() {
	q.lock.Lock()
	defer q.lock.Unlock()
	q.left++
}

// A killLane works on one store after the other.
type killLane struct {
	*soak
	hunt
	n       int
	wanted  *quota
	tallies *tallies

	stores int
}

// run kills until the quota is met.
func (l *killLane) run(ctx context.Context) error {
	for more := true; more && ctx.Err() == nil; {
		l.stores++
		dir := filepath.Join(l.folder.Dir, fmt.Sprintf("%s-%s-%d-%d", l.part, l.name, l.n, l.stores))
		store, err := openKillStore(ctx, l.soak, dir)
		if err != nil {
			return err
		}
		more, err = l.work(ctx, store)
		store.close()
		if err != nil {
			return err
		}
	}
	return nil
}

// work kills in one store until its group is full, checks it, and reports whether more kills are wanted.
func (l *killLane) work(ctx context.Context, store *killStore) (more bool, err error) {
	p, err := l.new(store)
	if err != nil {
		return false, err
	}
	defer p.close()
	pointOf := map[string]string{} // by cycle
	points := p.points()
	more = true
	for kills := 0; kills < l.group && ctx.Err() == nil; {
		var n int
		if n, more = l.wanted.take(); !more {
			break
		}
		point := points[n%len(points)]
		cycle := fmt.Sprintf("%s-%d", l.name, n)
		pointOf[cycle] = point.Name
		hit, err := l.cycle(ctx, store, p, cycle, point)
		if err != nil {
			return false, fmt.Errorf("%s, %s: %w", cycle, point.Name, err)
		}
		if l.tallies.add(l.name, point.Name, hit); hit {
			kills++
		} else {
			l.wanted.missed()
		}
	}
	if ctx.Err() != nil || len(pointOf) == 0 { // others took the last kills: nothing happened here
		return false, nil
	}
	findings, err := p.check(ctx)
	for _, f := range findings {
		l.tallies.find(l.name, pointOf[f.cycle], f)
	}
	return more, err
}

func (l *killLane) cycle(ctx context.Context, store *killStore, p prey, cycle string, point trap.Point) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, patienceOfCycle)
	defer cancel()
	if err := p.prepare(ctx, cycle); err != nil {
		return false, fmt.Errorf("prepare: %w", err)
	}
	engine, err := store.engine(ctx)
	if err != nil {
		return false, err
	}
	set, err := trap.Set(ctx, engine.PID, point)
	if err != nil {
		return false, err
	}
	hit, err := p.strike(ctx, set)
	if err != nil {
		store.release(set)
	}
	return hit, err
}
