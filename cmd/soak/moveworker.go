package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/runlens/runlens/cmd/internal/harness"
	"github.com/runlens/runlens/ingest/source/postgres"
	"github.com/runlens/runlens/ingest/source/postgrestest"
)

// A moveWorker is `runlens worker` on a PostgreSQL in which rows of all organizations are added and changed.
type moveWorker struct {
	*relocation
	source *postgrestest.Server
	conn   *pgx.Conn
	rounds int

	lock    sync.Mutex
	process *exec.Cmd
	gone    chan struct{} // closed when the process has ended
}

func newMoveWorker(ctx context.Context, r *relocation) (*moveWorker, error) {
	starting, cancel := context.WithTimeout(ctx, sourcePatience)
	defer cancel()
	w := &moveWorker{relocation: r}
	var err error
	if w.source, err = postgrestest.Start(starting); err != nil {
		return nil, err
	}
	if w.conn, err = pgx.Connect(starting, w.source.URL()); err == nil {
		_, err = w.conn.Exec(starting, postgres.Layout)
	}
	if err == nil {
		err = w.start()
	}
	if err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

func (w *moveWorker) start() error {
	command := w.product.Command(w.life, "worker", "--source", w.source.URL(), "--admin-listen", "off", "--poll-interval",
		"200ms", "--overlap", "2s", "--reconcile-every", "0")
	log, err := os.OpenFile(w.file("worker.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	command.Stderr = log
	if err := command.Start(); err != nil {
		return err
	}
	w.lock.Lock()
	defer w.lock.Unlock()
	w.process, w.gone = command, make(chan struct{})
	go func(gone chan struct{}) {
		_ = command.Wait() // it is killed, and started again
		close(gone)
	}(w.gone)
	return nil
}

// kill kills the worker, and starts another one.
func (w *moveWorker) kill() error {
	select {
	case <-w.gone:
		w.refused.add("the worker had ended, see worker.log")
	default:
		_ = w.process.Process.Kill()
		<-w.gone
	}
	return w.start()
}

const (
	// sourceDays is on how many days the source's rows are, from firstSourceDay on; a round adds one on each.
	sourceDays  = 20
	sourcePause = time.Second / 2
)

var firstSourceDay = time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)

// moveRound adds a run and its attribution record on each day of the source to an organization, and changes some of the
// runs that it had.
const moveRound = `
UPDATE runs SET status = 'COMPLETED' WHERE organization_id = '%[1]s'
	AND run_id IN (SELECT run_id FROM runs WHERE organization_id = '%[1]s' ORDER BY updated_at DESC LIMIT 30);
INSERT INTO agents (organization_id, agent_id, name) VALUES ('%[1]s', gen_random_uuid(), 'Agent');
WITH added AS (
	INSERT INTO runs (organization_id, run_id, agent_id, status, initiator_identifier, created_at)
	SELECT '%[1]s', gen_random_uuid(), gen_random_uuid(), 'RUNNING', 'w' || g || '@example.com', date '%[3]s' + g
	FROM generate_series(0, %[2]d - 1) g RETURNING *)
INSERT INTO attributions (organization_id, attribution_id, run_id, agent_id, user_identifier, activity_type,
	run_initiation_type, source, occurred_at)
	SELECT organization_id, gen_random_uuid(), run_id, agent_id, initiator_identifier, 'initiated', 'human', 'web',
		created_at FROM added`

// change changes the source, one organization after the other.
func (w *moveWorker) change(ctx, end context.Context) {
	for ; harness.Pause(end, sourcePause); w.rounds++ {
		o := w.organizations[w.rounds%len(w.organizations)]
		o.history.changing()
		if _, err := w.conn.Exec(ctx, fmt.Sprintf(moveRound, o.name, sourceDays,
			firstSourceDay.Format(time.DateOnly))); err != nil {
			w.refused.add("change the source: %v", err)
			return
		}
	}
}

func (w *moveWorker) close() {
	if w.gone != nil {
		_ = w.process.Process.Kill() // nothing that it holds is needed
		<-w.gone
	}
	if w.conn != nil {
		w.conn.Close(context.Background())
	}
	if err := w.source.Stop(); err != nil {
		w.say("PostgreSQL: %v", err)
	}
}
