package main

import (
	"context"
	"path/filepath"
	"time"

	"github.com/runlens/runlens/cmd/internal/process"
	"github.com/runlens/runlens/cmd/internal/trap"
	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
)

// A refreshPrey is the refresher of a server.
type refreshPrey struct {
	store   *killStore
	records killRecords
	server  *process.Server
	stored  time.Time // after the last record was stored, by the store's clock

	cycle   string            // the running one
	waiting string            // the one whose records are to be refreshed
	last    map[string]string // the last cycle that killed while the records of another one waited
}

func newRefreshPrey(store *killStore) (prey, error) {
	return &refreshPrey{store: store, records: killRecords{sent: versions{}}, last: map[string]string{}}, nil
}

func (p *refreshPrey) points() (all []trap.Point) {
	for _, table := range []string{schema.RollupTables[0].Table, schema.RollupTables[1].Table, schema.TableInitiatorKeys} {
		parts := 2 // one a quarter
		if table == schema.TableInitiatorKeys {
			parts = 1
		}
		for n := range parts {
			all = append(all, p.store.atPart(table, n+1)...)
			all = append(all, p.store.atLog(table, n+1)...)
		}
		all = append(all, p.store.atAnswer(table, 1)...)
	}
	log := schema.TableRollupLog
	for n := range 2 { // the claim and the commit
		all = append(all, p.store.atLog(log, n+1)...)
		all = append(all, p.store.atPart(log, n+1)...)
		all = append(all, p.store.atAnswer(log, n+1)...)
	}
	return append(all, p.store.atPart(schema.TableInsertCounters, 1)...) // where the log's entries are counted
}

// The refresher waits for more rows than these, unless the last refresh was 10 s ago.
const (
	refreshedRuns         = 6000
	refreshedAttributions = 2600
)

// prepare stores what the refresher has to do. A killed refresh leaves it undone, and the next cycle has the same.
func (p *refreshPrey) prepare(ctx context.Context, cycle string) error {
	p.cycle = cycle
	if p.server == nil {
		var err error
		if p.server, err = p.store.serve(); err != nil {
			return err
		}
	}
	if done, err := p.refreshed(ctx); err != nil || !done {
		return err
	}
	p.waiting = cycle
	file := filepath.Join(p.store.dir, cycle+".ndjson")
	if err := p.records.write(file, cycle, refreshedRuns, refreshedAttributions, 1500); err != nil {
		return err
	}
	if err := p.store.run(ctx, "ingest", file); err != nil {
		return err
	}
	server, err := p.store.open(ctx)
	if err != nil {
		return err
	}
	now, err := snapshot.Now(ctx, server.Conn())
	p.stored = now
	return err
}

// refreshed reports whether all that was stored is in the rollup.
func (p *refreshPrey) refreshed(ctx context.Context) (bool, error) {
	server, err := p.store.open(ctx)
	if err != nil {
		return false, err
	}
	state, err := snapshot.ReadLog(ctx, server.Conn())
	return !state.Until.Before(p.stored), err
}

// strike waits until the refresher has come to the point, or has done everything.
func (p *refreshPrey) strike(ctx context.Context, set *trap.Trap) (bool, error) {
	for {
		select {
		case <-ctx.Done():
			return p.store.release(set), ctx.Err()
		case <-set.Sprung():
			hit := p.store.release(set)
			p.last[p.waiting] = p.cycle
			_, err := p.store.open(ctx) // the next engine
			return hit, err
		case <-time.After(refreshPoll):
		}
		// An error may be the kill's.
		if done, err := p.refreshed(ctx); err == nil && done {
			return p.store.release(set), nil
		}
	}
}

func (p *refreshPrey) check(ctx context.Context) ([]finding, error) {
	found, err := p.store.checkFiles(ctx, &p.records)
	for i := range found {
		f := &found[i]
		f.what += ", of " + f.cycle
		f.cycle = p.last[f.cycle]
	}
	return found, err
}

func (p *refreshPrey) close() {
	if p.server != nil {
		p.server.Stop()
	}
}
