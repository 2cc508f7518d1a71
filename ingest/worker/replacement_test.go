package worker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/ingest/worker"
)

var errDied = errors.New("the process died")

// A dyingConn is the store of a process that dies when it is about to send a statement.
type dyingConn struct {
	driver.Conn
	before string // how the statement begins
	died   atomic.Bool
}

func (c *dyingConn) dies(statement string) bool {
	if strings.HasPrefix(statement, c.before) {
		c.died.Store(true)
	}
	return c.died.Load()
}

func (c *dyingConn) Exec(ctx context.Context, statement string, args ...any) error {
	if c.dies(statement) {
		return errDied
	}
	return c.Conn.Exec(ctx, statement, args...)
}

func (c *dyingConn) Query(ctx context.Context, statement string, args ...any) (driver.Rows, error) {
	if c.dies(statement) {
		return nil, errDied
	}
	return c.Conn.Query(ctx, statement, args...)
}

func (c *dyingConn) PrepareBatch(ctx context.Context, statement string, options ...driver.PrepareBatchOption) (
	driver.Batch, error) {
	if c.dies(statement) {
		return nil, errDied
	}
	return c.Conn.PrepareBatch(ctx, statement, options...)
}

// Wherever a worker dies while it replaces records, the next one finishes that when it starts, without a comparison.
func TestReplacementsSurviveCrashes(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.insertLongAgo("acme", 1, 60)
	b.copied()
	for _, c := range []struct {
		when, before string
		missing      uint64 // runs, until the next worker starts
	}{
		{"after the ids are stored", "INSERT INTO rollup_log", 0},
		{"after the purge", "INSERT INTO runs ", 40},
		{"after the source's records are stored", "ALTER TABLE replacements", 0},
	} {
		b.do(`UPDATE runs SET status = 'PENDING', updated_at = updated_at - interval '1 hour'
			WHERE get_byte(uuid_send(run_id), 15) <= 40`)
		b.dies(c.before, time.Hour)
		if n := b.count(runs); n != 60-c.missing {
			t.Errorf("%s: %d runs are left, want %d", c.when, n, 60-c.missing)
		}
		if n := b.count(pending); n != 1 {
			t.Errorf("%s: %d replacements are noted, want 1", c.when, n)
		}
		_, stop := b.start(nil)
		b.until(c.when+": the replacement is finished", func() bool { return b.count(pending) == 0 })
		stop()
		if d := b.differences(); len(d) != 0 || b.count(runs) != 60 {
			t.Errorf("%s: %d groups differ, %d runs are there", c.when, len(d), b.count(runs))
		}
	}
}

// A worker that finishes the replacement of another one is killed when records are missing. The other one, which only
// stood still, stored its records before they were purged again, and takes out its ids.
func TestWhoBeganAReplacementGoesOn(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.insertLongAgo("acme", 1, 60)
	b.copied()
	b.do(`UPDATE runs SET status = 'PENDING', updated_at = updated_at - interval '1 hour'
		WHERE get_byte(uuid_send(run_id), 15) <= 40`)
	b.dies("INSERT INTO runs ", time.Hour)
	begun := b.count("SELECT any(replacement) FROM replacements")
	b.dies("INSERT INTO runs ", 0)
	if n := b.count(runs); n != 20 {
		t.Fatalf("%d runs are left, want 20", n)
	}
	takeOut := fmt.Sprintf("ALTER TABLE replacements DROP PARTITION ID '%d'", begun)
	if err := b.store.Exec(t.Context(), takeOut); err != nil {
		t.Fatal(err)
	}
	_, stop := b.start(nil)
	b.until("the replacement is finished", func() bool { return b.count(pending) == 0 })
	stop()
	if d := b.differences(); len(d) != 0 || b.count(runs) != 60 {
		t.Errorf("%d groups differ, %d runs are there", len(d), b.count(runs))
	}
}

const runs, pending = "SELECT uniqExact(run_id) FROM runs", "SELECT uniqExact(replacement) FROM replacements"

// dies runs a worker that dies when it is about to send a statement.
func (b *bed) dies(before string, reconcileEvery time.Duration) {
	b.Helper()
	options := b.options(nil)
	options.Conn, options.ReconcileEvery = &dyingConn{Conn: b.store, before: before}, reconcileEvery
	if err := worker.Run(b.Context(), options); !errors.Is(err, errDied) {
		b.Fatalf("the worker ended with %v", err)
	}
}

// What the source deletes or breaks meanwhile is not brought back, and ends the replacement.
func TestReplacementsOfWhatIsGoneEnd(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.insert("acme", 1, 3)
	b.copied()
	for _, of := range []string{"7, 'test'", "8, 'another source'"} {
		if err := b.store.Exec(t.Context(), "INSERT INTO replacements SELECT "+of+", 'acme', 'run', run_id FROM "+
			"runs"); err != nil {
			t.Fatal(err)
		}
	}
	b.do(`DELETE FROM runs WHERE get_byte(uuid_send(run_id), 15) = 1;
		UPDATE runs SET status = 'STATUS_OF_TOMORROW' WHERE get_byte(uuid_send(run_id), 15) = 2`)
	_, stop := b.start(nil)
	b.until("the replacement is finished", func() bool {
		return b.count("SELECT count() FROM replacements WHERE replacement = 7") == 0
	})
	stop()
	if n := b.count("SELECT uniqExact(run_id) FROM runs"); n != 3 {
		t.Errorf("%d runs are left, want all three: they are for the next comparison", n)
	}
	if n := b.count("SELECT count() FROM replacements"); n != 3 {
		t.Errorf("%d ids of another source are left, want 3", n)
	}
}
