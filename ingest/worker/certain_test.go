package worker_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/worker"
)

// overlapped waits until a pass has begun that does not reach back to now any more.
func (b *bed) overlapped(status *worker.Status, marker int) {
	b.Helper()
	for range 2 {
		before := status.Report().Kinds[normalize.KindRun].Stored
		b.insert("marker", marker, 1)
		b.until("a later row is stored", func() bool { return status.Report().Kinds[normalize.KindRun].Stored > before })
		marker++
	}
}

func (b *bed) exec(conn *pgx.Conn, sql string) {
	b.Helper()
	if _, err := conn.Exec(context.Background(), sql); err != nil {
		b.Fatal(err)
	}
}

// waitsFor waits until the status says what the worker waits for: at the end of a pass, which is after it stored rows.
func (b *bed) waitsFor(status *worker.Status, what string) {
	b.Helper()
	b.until("it waits for a "+what, func() bool {
		return strings.Contains(status.Report().Kinds[normalize.KindRun].WaitsFor, what)
	})
}

// certainUntil is the status of runs, zero for nothing.
func certainUntil(status *worker.Status) time.Time {
	if c := status.Report().Kinds[normalize.KindRun].CertainUntil; c != nil {
		return *c
	}
	return time.Time{}
}

// A transaction may read first, wait longer than the overlap, and then write with the time of its begin, by
// which it has no transaction id yet while it waits.
func TestTransactionsThatReadFirst(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.insert("acme", 1, 50)
	// Between two polls there is time to write and to commit.
	status, _ := b.start(func(o *worker.Options) { o.Overlap, o.PollInterval = 0, 500*time.Millisecond })
	b.untilEqual()
	late := b.connect()
	b.exec(late, "BEGIN; SELECT count(*) FROM runs")
	var began time.Time
	if err := late.QueryRow(context.Background(), "SELECT now()").Scan(&began); err != nil {
		t.Fatal(err)
	}
	b.overlapped(status, 1)
	b.waitsFor(status, "session")
	if until := certainUntil(status); until.After(began) {
		t.Errorf("certain until %v, with a transaction open since %v", until, began)
	}
	b.exec(late, "UPDATE runs SET status = 'FAILED', updated_at = now() WHERE organization_id = 'acme'; COMMIT")
	b.untilEqual()
	b.until("what was open is certain", func() bool { return certainUntil(status).After(began) })
}

// A prepared transaction belongs to no session, and nothing says when it began.
func TestPreparedTransactions(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	if b.setting("max_prepared_transactions") == "0" {
		t.Skip("the server allows no prepared transactions")
	}
	b.insert("acme", 1, 50)
	status, stop := b.start(func(o *worker.Options) { o.Overlap = 0 })
	b.untilEqual()
	prepare := func(name string) {
		b.do("BEGIN; UPDATE runs SET status = '" + name +
			"', updated_at = now() WHERE organization_id = 'acme'; PREPARE TRANSACTION '" + name + "'")
	}
	prepare("FAILED")
	b.overlapped(status, 1)
	b.waitsFor(status, "prepared")
	b.do("COMMIT PREPARED 'FAILED'")
	b.untilEqual()

	// One that was there before the worker, too.
	stop()
	prepare("CANCELLED")
	b.insert("acme", 51, 1)
	status, _ = b.start(func(o *worker.Options) { o.Overlap = 0 })
	b.overlapped(status, 3)
	b.do("COMMIT PREPARED 'CANCELLED'")
	b.untilEqual()
}

// Where some prepared transaction is always in progress, certainty moves all the same, and each pass reads what the
// last one to end can have changed, and no more.
func TestPreparedTransactionsWithoutAGap(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	if b.setting("max_prepared_transactions") == "0" {
		t.Skip("the server allows no prepared transactions")
	}
	b.insert("acme", 1, 50)
	status, stop := b.start(func(o *worker.Options) { o.Overlap = 0 })
	b.untilEqual()
	prepare := func(n int) {
		b.do(fmt.Sprintf("BEGIN; UPDATE runs SET status = 'FAILED', updated_at = now() "+
			"WHERE organization_id = 'acme' AND run_id = lpad(to_hex(%d), 32, '0')::uuid; PREPARE TRANSACTION 'p%[1]d'", n))
	}
	stored := func() int64 { return status.Report().Kinds[normalize.KindRun].Stored }
	const rounds = 8
	prepare(1)
	b.waitsFor(status, "prepared")
	var second time.Time
	for n := 1; n < rounds; n++ {
		b.insert("acme", 100*n, 50) // which the passes before this round's commit have read
		before := stored()
		b.until("the rows are stored", func() bool { return stored() >= before+50 || len(b.differences()) == 0 })
		prepare(n + 1)
		if n == 1 {
			if err := b.connect().QueryRow(t.Context(), "SELECT clock_timestamp()").Scan(&second); err != nil {
				t.Fatal(err)
			}
		}
		b.overlapped(status, 2*n)
		b.do(fmt.Sprintf("COMMIT PREPARED 'p%d'", n))
		b.untilEqual()
	}
	b.until("certainty has moved on", func() bool { return certainUntil(status).After(second) })
	b.waitsFor(status, "prepared")
	stop()
	b.do(fmt.Sprintf("ROLLBACK PREPARED 'p%d'", rounds))
	// Each of 50 rows, and in every round but the last 50 rows more, 2 markers and the row that was prepared.
	if n, want := stored(), int64(50+(rounds-1)*(50+2+1)); n > want {
		t.Errorf("%d runs were stored for %d changes", n, want)
	}
}

// What a worker left uncertain is read by the next one.
func TestCommitsBetweenTwoWorkers(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.insert("acme", 1, 50)
	late := b.connect()
	b.exec(late, "BEGIN; SELECT count(*) FROM runs")
	status, stop := b.start(func(o *worker.Options) { o.Overlap = 0 })
	b.overlapped(status, 1)
	stop()
	b.exec(late, "UPDATE runs SET status = 'FAILED', updated_at = now() WHERE organization_id = 'acme'; COMMIT")
	b.start(func(o *worker.Options) { o.Overlap = 0 })
	b.untilEqual()
}

// A role that may not see other sessions can be certain of nothing, and says so.
func TestSourceThatHidesItsSessions(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.insert("acme", 1, 5)
	b.reopen("blind")
	app := b.connect() // its sessions are hidden from the worker
	status, stop := b.start(nil)
	b.untilEqual()
	b.untilCaughtUp(status, normalize.KindRun)
	if k := status.Report().Kinds[normalize.KindRun]; k.CertainUntil != nil ||
		!strings.Contains(k.WaitsFor, "pg_read_all_stats") {
		t.Errorf("certain until %v, waits for %q", k.CertainUntil, k.WaitsFor)
	}
	b.exec(app, "GRANT pg_read_all_stats TO blind")
	b.until("everything is certain", func() bool { return !certainUntil(status).IsZero() })
	stop()
}
