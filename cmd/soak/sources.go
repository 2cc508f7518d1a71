package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/runlens/runlens/cmd/internal/harness"
	"github.com/runlens/runlens/ingest/source/postgres"
)

const (
	// equalPatience is how long workers may take to have everything once nothing changes any more: a comparison that
	// has begun ends, and the next one finds what it was too early for.
	equalPatience = 8 * time.Minute
	// westShare is the part of the runs that the database west of UTC has, which lacks an index on its clock.
	westShare = 15
)

// loadFlags are those of workers while rows change: passes reach back for less than the transactions in flight, and
// comparisons follow each other.
var loadFlags = []string{"--poll-interval", "200ms", "--overlap", "2s", "--reconcile-every", "15s", "--delete-missing",
	"--delete-missing-share", "1"}

// idleFlags are the defaults without the comparison, which comes once an hour.
var idleFlags = []string{"--reconcile-every", "0"}

// proveSources copies two databases of a PostgreSQL, and one from a standby that lags, while everything goes on there
// that has made copies wrong or sources slow. In the end stores and sources are equal; nothing was sorted on the disk
// of a source; workers that have nothing to do take no processor time there; and lag was told truly.
func (s *soak) proveSources(ctx context.Context) error {
	b, err := s.openSources(ctx)
	if b != nil {
		defer b.close()
	}
	if err != nil {
		return err
	}
	for _, c := range b.copies {
		if err := c.start(loadFlags...); err != nil {
			return err
		}
	}
	if err := b.load(ctx); err != nil {
		return err
	}
	b.awaitEqual(ctx)
	b.reportLoad(ctx)
	if err := b.measureIdle(ctx); err != nil {
		return err
	}
	return b.reportTemporary(ctx)
}

// openSources starts the servers, fills the databases and opens the stores. What it returns is to be closed, also
// with an error.
func (s *soak) openSources(ctx context.Context) (*sources, error) {
	b := &sources{soak: s}
	dir := filepath.Join(s.folder.Dir, s.part)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	if err := b.startServers(ctx); err != nil {
		return b, err
	}
	hides := replaceLine(postgres.DefaultMapping, "FROM runs", "FROM runs WHERE NOT hidden")
	zoned := replaceLine(postgres.DefaultMapping, "       initiator_identifier, initiator_name, initiator_type, "+
		"created_at, updated_at", "initiator_identifier, initiator_name, initiator_type, created_at AT TIME ZONE '"+
		westZone+"' AS created_at, updated_at AT TIME ZONE '"+westZone+"' AS updated_at")
	mainURL, lateURL := b.primary.URL(), b.standby.URL()
	b.main = &sourceCopy{name: "primary", url: mainURL, truth: mainURL, workers: make([]*copyWorker, 2)}
	b.late = &sourceCopy{name: "standby", url: lateURL, truth: mainURL, workers: make([]*copyWorker, 1)}
	b.west = &sourceCopy{name: "west of UTC", url: b.westURL, truth: b.westURL, workers: make([]*copyWorker, 1)}
	for c, mapping := range map[*sourceCopy]string{b.main: hides, b.late: hides, b.west: zoned} {
		if err := c.open(ctx, s, filepath.Join(dir, c.name), mapping); err != nil {
			return b, err
		}
		b.copies = append(b.copies, c)
	}
	return b, nil
}

// load lets everything go on for SourcesFor and all events, and then lets all transactions end.
func (b *sources) load(ctx context.Context) error {
	end, cancel := context.WithCancel(ctx)
	defer cancel()
	b.say("rows change for %s", b.SourcesFor)
	loads := []func(ctx, end context.Context) error{
		func(ctx, end context.Context) error { return b.changeRows(ctx, end, b.primary.URL(), true) },
		func(ctx, end context.Context) error { return b.changeRows(ctx, end, b.primary.URL(), true) },
		func(ctx, end context.Context) error { return b.changeRows(ctx, end, b.westURL, false) },
		b.prepareTransactions, b.lockTables,
		func(ctx, end context.Context) error { return b.watchLag(ctx, end, b.main) },
		func(ctx, end context.Context) error { return b.watchLag(ctx, end, b.late) },
		func(ctx, end context.Context) error { defer cancel(); return b.events(ctx, end) },
	}
	failures := make([]error, len(loads))
	var wait sync.WaitGroup
	for i, run := range loads {
		wait.Go(func() {
			if failures[i] = run(ctx, end); failures[i] != nil {
				cancel()
			}
		})
	}
	b.reportUntil(end, func() string { return fmt.Sprintf("%s; lag told: %s", &b.changes, b.lags(end)) })
	wait.Wait()
	return errors.Join(failures...)
}

// events are what happens once, at a share of the time or as soon after it as the one before has ended: a purge waits
// for the claim of a paused worker.
func (b *sources) events(ctx, end context.Context) error {
	began := time.Now()
	for _, e := range []struct {
		share float64
		what  string
		do    func(context.Context) error
	}{
		{0.15, "all runs get one updated_at", func(ctx context.Context) error { return b.bulkUpdate(ctx, b.primary.URL()) }},
		{0.30, "the standby stops replaying", b.pauseReplay},
		{0.45, "the standby replays again", b.resumeReplay},
		{0.50, "a person is purged while a worker is paused", b.purgePaused},
		{0.60, "statements may take longer", b.raiseTimeouts},
		{0.75, "all runs get one updated_at", func(ctx context.Context) error { return b.bulkUpdate(ctx, b.primary.URL()) }},
		{0.80, "the same west of UTC", func(ctx context.Context) error { return b.bulkUpdate(ctx, b.westURL) }},
	} {
		if !harness.Pause(end, time.Until(began.Add(time.Duration(e.share*float64(b.SourcesFor))))) {
			return nil // another load failed
		}
		b.say("%s", e.what)
		if err := e.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", e.what, err)
		}
	}
	harness.Pause(end, time.Until(began.Add(b.SourcesFor)))
	return nil
}

// awaitEqual waits until `verify` finds every store equal to its source, and every worker is ready.
func (b *sources) awaitEqual(ctx context.Context) {
	for _, c := range b.copies {
		began, said := time.Now(), ""
		equal := harness.Poll(ctx, equalPatience, 2*time.Second, func() bool { said = c.verify(ctx); return said == "" })
		if equal {
			said = fmt.Sprintf("equal after %s", time.Since(began).Round(time.Second))
		}
		b.hold("verify: "+c.name, said, "equal", equal)
		ready := harness.Poll(ctx, equalPatience, time.Second, func() bool { said = c.unready(ctx); return said == "" })
		b.hold("workers are ready: "+c.name, "yes"+said, "yes", ready)
	}
}
