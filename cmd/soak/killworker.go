package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/runlens/runlens/cmd/internal/harness"
	"github.com/runlens/runlens/cmd/internal/trap"
	"github.com/runlens/runlens/ingest/source/postgres"
	"github.com/runlens/runlens/ingest/source/postgrestest"
)

const (
	// sourcePatience is how long the source's server may take to start.
	sourcePatience = time.Minute
	// checkpointLag is how long after its rows a checkpoint is written, at most.
	checkpointLag = 2 * time.Second
	// copyPatience is how long a worker may take to have everything once its engine runs again.
	copyPatience = 2 * time.Minute
)

// A workerPrey is `runlens worker` on a PostgreSQL in which rows are added and changed.
type workerPrey struct {
	store  *killStore
	source *postgrestest.Server
	conn   *pgx.Conn
	worker *exec.Cmd
	gone   chan struct{} // closed when the worker has ended
	cycle  string
	cycles int
	found  []finding
}

func newWorkerPrey(store *killStore) (prey, error) {
	ctx, cancel := context.WithTimeout(context.Background(), sourcePatience)
	defer cancel()
	p := &workerPrey{store: store}
	var err error
	if p.source, err = postgrestest.Start(ctx); err != nil {
		return nil, err
	}
	if p.conn, err = pgx.Connect(ctx, p.source.URL()); err == nil {
		_, err = p.conn.Exec(ctx, postgres.Layout)
	}
	if err != nil {
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

// start starts a worker unless one runs.
func (p *workerPrey) start() error {
	if p.gone != nil {
		select {
		case <-p.gone:
		default:
			return nil
		}
	}
	p.worker = p.store.product.Command(p.store.life, "worker", "--source", p.source.URL(), "--admin-listen", "off",
		"--poll-interval", "50ms", "--overlap", "2s", "--reconcile-every", "0")
	log, err := os.OpenFile(filepath.Join(p.store.dir, "worker.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	p.worker.Stderr = log
	if err := p.worker.Start(); err != nil {
		return err
	}
	p.gone = make(chan struct{})
	go func(worker *exec.Cmd, gone chan struct{}) {
		_ = worker.Wait() // it is ended, or started again
		close(gone)
	}(p.worker, p.gone)
	return nil
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
	_ = p.worker.Process.Kill()
	<-p.gone
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
	want, err := p.read(ctx, until)
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

// read reads the source's rows that changed before an instant of their table; with nil, all of them.
func (p *workerPrey) read(ctx context.Context, until map[string]time.Time) (versions, error) {
	want := versions{}
	for _, table := range []string{"agents", "runs", "attributions"} {
		before := time.Now().AddDate(1, 0, 0)
		if until != nil {
			before = until[table]
		}
		version := "(extract(epoch FROM date_trunc('milliseconds', updated_at)) * 1000)::bigint"
		if table == "attributions" {
			version = "0::bigint"
		}
		rows, err := p.conn.Query(ctx, "SELECT organization_id, "+strings.TrimSuffix(table, "s")+"_id, "+version+
			" FROM "+table+" WHERE updated_at < $1", before)
		if err != nil {
			return nil, err
		}
		var organization string
		var id [16]byte
		var at int64
		if _, err := pgx.ForEachRow(rows, []any{&organization, &id, &at}, func() error {
			want[recordID{table, organization, uuid.UUID(id)}] = at
			return nil
		}); err != nil {
			return nil, err
		}
	}
	return want, nil
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
	want, err := p.read(ctx, nil)
	if err != nil {
		return nil, err
	}
	found, err := p.store.checkAll(ctx, want)
	return append(append(found, verified...), p.found...), err
}

func (p *workerPrey) close() {
	if p.worker != nil {
		_ = p.worker.Process.Kill() // nothing that it holds is needed
		<-p.gone
	}
	if p.conn != nil {
		p.conn.Close(context.Background())
	}
	if err := p.source.Stop(); err != nil {
		p.store.soak.say("PostgreSQL: %v", err)
	}
}
