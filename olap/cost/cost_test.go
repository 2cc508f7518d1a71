package cost_test

import (
	"context"
	"testing"

	"github.com/runlens/runlens/olap/clickhouse"
	"github.com/runlens/runlens/olap/cost"
	"github.com/runlens/runlens/olap/olaptest"
)

func read(t *testing.T, ctx context.Context, store *clickhouse.Server, sql string) {
	t.Helper()
	var n uint64
	if err := store.Conn().QueryRow(ctx, sql).Scan(&n); err != nil {
		t.Fatal(err)
	}
}

// A meter adds up what ClickHouse reports of the statements of its context, and no others; the one around it adds up
// those of both.
func TestMeasure(t *testing.T) {
	store := olaptest.OpenStore(t)
	around, outer := cost.Measure(t.Context())
	read(t, around, store, "SELECT count() FROM numbers(1000) WHERE number % 2 = 0")
	within, inner := cost.Measure(around)
	for range 2 {
		read(t, within, store, "SELECT count() FROM numbers(70000) WHERE number % 2 = 0")
	}
	read(t, t.Context(), store, "SELECT count() FROM numbers(500) WHERE number % 2 = 0")
	for _, c := range []struct {
		name       string
		cost       cost.Cost
		statements uint64
		rows       uint64 // of 8 bytes each
	}{
		{"inner", inner.Cost(), 2, 140_000}, {"outer", outer.Cost(), 3, 141_000},
	} {
		if c.cost.Statements != c.statements {
			t.Errorf("%s: %d statements, want %d", c.name, c.cost.Statements, c.statements)
		}
		if c.cost.Rows != c.rows || c.cost.Bytes != 8*c.rows || c.cost.Elapsed <= 0 {
			t.Errorf("%s: %+v, want %d rows of 8 bytes", c.name, c.cost, c.rows)
		}
		// The embedded engine is reached over HTTP, which reports neither.
		if known := c.cost.Processor != nil && c.cost.PeakBytes != nil; known == store.Embedded() {
			t.Errorf("%s: processor time %v, peak %v", c.name, c.cost.Processor, c.cost.PeakBytes)
		}
	}
	if _, idle := cost.Measure(t.Context()); idle.Cost() != (cost.Cost{}) {
		t.Errorf("%+v without a statement", idle.Cost())
	}
}

// What the driver asks over a connection that is made for a statement is no part of it.
func TestMeasureOverANewConnection(t *testing.T) {
	store := olaptest.OpenStore(t)
	for range 5 {
		busy, err := store.Conn().Query(t.Context(), "SELECT number FROM numbers(10)")
		if err != nil {
			t.Fatal(err)
		}
		defer busy.Close()
		ctx, meter := cost.Measure(t.Context())
		read(t, ctx, store, "SELECT count() FROM numbers(1000) WHERE number % 2 = 0")
		if c := meter.Cost(); c.Statements != 1 || c.Rows != 1000 {
			t.Errorf("%d statements and %d rows, want 1 and 1000", c.Statements, c.Rows)
		}
	}
}
