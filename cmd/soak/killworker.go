package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/runlens/runlens/cmd/internal/harness"
	"github.com/runlens/runlens/cmd/internal/trap"
)

const (
	// checkpointLag is how long after its rows a checkpoint is written, at most.
	checkpointLag = 2 * time.Second
	// copyPatience is how long a worker may take to have everything once its engine runs again.
	copyPatience = 2 * time.Minute
)

// A workerPrey is a worker whose engine is killed while rows are added and changed.
type workerPrey struct {
	sourceWorker
	store  *killStore
	cycle  string
	cycles int
	found  []finding
}

func newWorkerPrey(store *killStore) (prey, error) {
	p := &workerPrey{store: store, sourceWorker: sourceWorker{product: store.product, life: store.life,
		log: filepath.Join(store.dir, "worker.log"), poll: "50ms"}}
	if err := p.openSource(context.Background()); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *workerPrey) points() []trap.Point { return p.store.atInserts() }

func (p *workerPrey) prepare(_ context.Context, cycle string) error {
	p.cycle = cycle
	p.cycles++
	return p.start()
}

// change adds rows of an organization, which is the cycle's, and changes rows of others.
const change = `
INSERT INTO agents (organization_id, agent_id, name) VALUES ('%[1]s', gen_random_uuid(), 'Agent');
INSERT INTO runs (organization_id, run_id, agent_id, status, initiator_identifier, created_at)
	SELECT '%[1]s', gen_random_uuid(), gen_random_uuid(), 'RUNNING', 'p' || g || '@example.com', date '2026-01-05' +
		(g %% 3) * interval '1 month'
	FROM generate_series(1, 200) g;
INSERT INTO attributions (organization_id, attribution_id, run_id, agent_id, user_identifier, activity_type,
	run_initiation_type, source, occurred_at)
	SELECT organization_id, gen_random_uuid(), run_id, agent_id, initiator_identifier, 'initiated', 'human', 'web',
		created_at
	FROM runs WHERE organization_id = '%[1]s' LIMIT 120;
UPDATE runs SET status = 'COMPLETED'
	WHERE run_id IN (SELECT run_id FROM runs WHERE organization_id != '%[1]s' ORDER BY random() LIMIT 60)`

func (p *workerPrey) strike(ctx context.Context, set *trap.Trap) (hit bool, err error) {
	if _, err := p.conn.Exec(ctx, fmt.Sprintf(change, p.cycle)); err != nil {
		return false, err
	}
	var copied time.Time
	for {
		select {
		case <-ctx.Done():
			return p.store.release(set), ctx.Err()
		case <-set.Sprung():
			return p.store.release(set), p.afterKill(ctx)
		case <-time.After(refreshPoll):
		}
		if !copied.IsZero() && time.Since(copied) > checkpointLag {
			return p.store.release(set), nil
		}
		if copied.IsZero() && p.copied(ctx) {
			copied = time.Now()
		}
	}
}

// copied reports whether the last rows of the cycle are stored. An error may be the kill's.
func (p *workerPrey) copied(ctx context.Context) bool {
	server, err := p.store.open(ctx)
	var n uint64
	return err == nil && server.Conn().QueryRow(ctx, "SELECT uniqExact(attribution_id) FROM attributions"+
		" WHERE organization_id = '"+p.cycle+"'").Scan(&n) == nil && n == 120
}

// afterKill kills every other worker together with its engine, and compares its checkpoints with the rows.
func (p *workerPrey) afterKill(ctx context.Context) error {
	if p.cycles%2 == 0 {
		_, err := p.store.open(ctx)
		return err
	}
	p.end()
	return p.checkCheckpoints(ctx)
}

// checkCheckpoints finds rows that a checkpoint says are stored and that are not.
func (p *workerPrey) checkCheckpoints(ctx context.Context) error {
	server, err := p.store.open(ctx)
	if err != nil {
		return err
	}
	rows, err := server.Conn().Query(ctx, "SELECT name, argMax(position, (revision, saved_at)) FROM checkpoints"+
		" WHERE startsWith(name, 'worker:') GROUP BY name")
	if err != nil {
		return err
	}
	defer rows.Close()
	until := map[string]time.Time{}
	for rows.Next() {
		var name, text string
		var position struct {
			Until time.Time `json:"until"`
		}
		if err := rows.Scan(&name, &text); err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(text), &position); err != nil {
			return err
		}
		until[name[strings.LastIndexByte(name, ':')+1:]+"s"] = position.Until // run: runs
	}
	if err := rows.Err(); err != nil {
		return err
	}
	want, err := p.readSource(ctx, until)
	if err != nil {
		return err
	}
	found, err := compareStored(ctx, server.Conn(), want)
	for _, f := range found {
		if f.lost > 0 {
			f.doubled, f.differing, f.what = 0, 0, "before the checkpoint: "+f.what
			p.found = append(p.found, f)
		}
	}
	return err
}

func (p *workerPrey) check(ctx context.Context) ([]finding, error) {
	if err := p.start(); err != nil {
		return nil, err
	}
	server, err := p.store.serve()
	if err != nil {
		return nil, err
	}
	defer server.Stop()
	var verified []finding
	harness.Poll(ctx, copyPatience, time.Second, func() bool {
		verified = p.store.verify(ctx, "--recheck-after", "0s", "--source", p.source.URL())
		return len(verified) == 0
	})
	want, err := p.readSource(ctx, nil)
	if err != nil {
		return nil, err
	}
	found, err := p.store.checkAll(ctx, want)
	return append(append(found, verified...), p.found...), err
}

func (p *workerPrey) close() {
	if err := p.sourceWorker.close(); err != nil {
		p.store.soak.say("PostgreSQL: %v", err)
	}
}
