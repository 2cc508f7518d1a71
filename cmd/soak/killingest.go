package main

import (
	"context"
	"path/filepath"

	"github.com/runlens/runlens/cmd/internal/trap"
)

// An ingestPrey is `runlens ingest` of one small file a cycle.
type ingestPrey struct {
	store   *killStore
	records killRecords
}

func newIngestPrey(store *killStore) (prey, error) {
	return &ingestPrey{store: store, records: killRecords{sent: versions{}}}, nil
}

func (p *ingestPrey) points() []trap.Point { return p.store.atInserts() }

// atInserts are the points of a copy: those of its inserts, of what counts them, and of its checkpoint.
func (k *killStore) atInserts() (all []trap.Point) {
	for _, table := range []string{"runs", "attributions"} {
		all = append(all, k.atLog(table, 1)...)
		all = append(all, k.atPart(table, 1)...)
		all = append(all, k.atPart(table, 2)...)
		all = append(all, k.atAnswer(table, 1)...)
	}
	all = append(all, k.atLog("agents", 1)...)
	all = append(all, k.atPart("agents", 1)...)
	all = append(all, k.atPart("insert_counters", 1)...)
	all = append(all, k.atPart("insert_counters", 2)...)
	all = append(all, k.atPart("checkpoints", 1)...)
	return append(all, k.atAnswer("checkpoints", 1)...)
}

func (p *ingestPrey) prepare(_ context.Context, cycle string) error {
	return p.records.write(filepath.Join(p.store.dir, cycle+".ndjson"), cycle, 300, 200, 60)
}

func (p *ingestPrey) strike(ctx context.Context, set *trap.Trap) (bool, error) {
	return p.store.strikeCommand(ctx, set, "ingest", p.records.files[len(p.records.files)-1])
}

// strikeCommand runs a command under a trap, and again until it succeeds.
func (k *killStore) strikeCommand(ctx context.Context, set *trap.Trap, args ...string) (hit bool, err error) {
	ended := make(chan error, 1)
	go func() { ended <- k.run(ctx, args...) }()
	select {
	case err = <-ended:
		return k.release(set), err
	case <-set.Sprung():
		hit = k.release(set)
		return hit, <-ended
	}
}

func (p *ingestPrey) check(ctx context.Context) ([]finding, error) {
	server, err := p.store.serve()
	if err != nil {
		return nil, err
	}
	defer server.Stop()
	return p.store.checkFiles(ctx, &p.records)
}

// checkFiles compares the store with what was sent in files.
func (k *killStore) checkFiles(ctx context.Context, records *killRecords) ([]finding, error) {
	found, err := k.checkAll(ctx, records.sent)
	if err != nil {
		return nil, err
	}
	return append(found, k.verify(ctx, records.files...)...), nil
}

func (p *ingestPrey) close() {}
