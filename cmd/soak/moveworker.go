package main

import (
	"context"
	"fmt"
	"time"

	"github.com/runlens/runlens/cmd/internal/harness"
)

// A moveWorker is a worker on a source in which rows of all organizations are added and changed.
type moveWorker struct {
	sourceWorker
	*relocation
	rounds int
}

func newMoveWorker(ctx context.Context, r *relocation) (*moveWorker, error) {
	w := &moveWorker{relocation: r, sourceWorker: sourceWorker{product: r.product, life: r.life,
		log: r.file("worker.log"), poll: "500ms"}}
	err := w.openSource(ctx)
	if err == nil {
		err = w.start()
	}
	if err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

// kill kills the worker, and starts another one.
func (w *moveWorker) kill() error {
	if !w.alive() {
		w.refused.add("the worker had ended, see worker.log")
	}
	w.end()
	return w.start()
}

const (
	// sourceDays is on how many days the source's rows are, from firstSourceDay on; a round adds one on each.
	sourceDays  = 20
	sourcePause = time.Second
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
	if err := w.sourceWorker.close(); err != nil {
		w.say("PostgreSQL: %v", err)
	}
}
