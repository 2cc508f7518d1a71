package main

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/runlens/runlens/cmd/internal/process"
	"github.com/runlens/runlens/ingest/source/postgres"
	"github.com/runlens/runlens/ingest/source/postgrestest"
)

// sourcePatience is how long the source's server may take to start.
const sourcePatience = time.Minute

// A sourceWorker is `runlens worker` on a PostgreSQL of its own, in which whoever has it adds and changes rows.
type sourceWorker struct {
	product process.Product
	life    context.Context // of the worker
	log     string          // its file
	poll    string          // its poll interval
	source  *postgrestest.Server
	conn    *pgx.Conn
	process *exec.Cmd
	gone    chan struct{} // closed when the worker has ended; nil before the first one
}

// openSource starts the PostgreSQL, and no worker yet.
func (w *sourceWorker) openSource(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, sourcePatience)
	defer cancel()
	var err error
	if w.source, err = postgrestest.Start(ctx); err != nil {
		return err
	}
	if w.conn, err = pgx.Connect(ctx, w.source.URL()); err == nil {
		_, err = w.conn.Exec(ctx, postgres.Layout)
	}
	return err
}

// alive reports whether a worker runs.
func (w *sourceWorker) alive() bool {
	if w.gone == nil {
		return false
	}
	select {
	case <-w.gone:
		return false
	default:
		return true
	}
}

// start starts a worker unless one runs.
func (w *sourceWorker) start() error {
	if w.alive() {
		return nil
	}
	w.process = w.product.Command(w.life, "worker", "--source", w.source.URL(), "--admin-listen", "off",
		"--poll-interval", w.poll, "--overlap", "2s", "--reconcile-every", "0")
	log, err := os.OpenFile(w.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	w.process.Stderr = log
	if err := w.process.Start(); err != nil {
		return err
	}
	w.gone = make(chan struct{})
	go func(worker *exec.Cmd, gone chan struct{}) {
		_ = worker.Wait() // it is ended, or started again
		close(gone)
	}(w.process, w.gone)
	return nil
}

// end kills the worker, if one was started.
func (w *sourceWorker) end() {
	if w.gone != nil {
		_ = w.process.Process.Kill() // it may have ended
		<-w.gone
	}
}

// readSource reads the source's rows that changed before an instant of their table; with nil, all of them.
func (w *sourceWorker) readSource(ctx context.Context, until map[string]time.Time) (versions, error) {
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
		rows, err := w.conn.Query(ctx, "SELECT organization_id, "+strings.TrimSuffix(table, "s")+"_id, "+version+
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

// close ends the worker and its source.
func (w *sourceWorker) close() error {
	w.end()
	if w.conn != nil {
		w.conn.Close(context.Background())
	}
	if w.source == nil {
		return nil
	}
	return w.source.Stop()
}
