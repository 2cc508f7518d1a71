package write_test

import (
	"context"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/runlens/runlens/ingest/write"
	"github.com/runlens/runlens/olap/olaptest"
)

// An attempt may store rows and fail before they are counted. The one that repeats it stores nothing twice and counts them.
func TestRepeatedInsertsAreCounted(t *testing.T) {
	ctx := context.Background()
	conn := olaptest.OpenStore(t).Conn()
	if err := conn.Exec(ctx, "ALTER TABLE stored_counts ADD CONSTRAINT never CHECK rows = 0"); err != nil {
		t.Fatal(err)
	}
	b := batch(3)
	if err := write.WithToken(write.NewWriter(conn, quiet), "same").Write(ctx, b); err == nil {
		t.Fatal("written without counting")
	}
	if n := rows(t, conn); n != 3 {
		t.Fatalf("%d rows are stored before they are counted, want 3", n)
	}
	if err := conn.Exec(ctx, "ALTER TABLE stored_counts DROP CONSTRAINT never"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []uint64{3, 6} { // what is counted twice is only looked at twice
		if err := write.WithToken(write.NewWriter(conn, quiet), "same").Write(ctx, b); err != nil {
			t.Fatal(err)
		}
		var counted uint64
		err := conn.QueryRow(ctx, "SELECT sum(rows) FROM stored_counts WHERE source = {source:String} AND organization_id = 'acme'",
			clickhouse.Named("source", "attributions")).Scan(&counted)
		if err != nil || counted != want || rows(t, conn) != 3 {
			t.Errorf("%d of %d rows are counted, want %d of 3: %v", counted, rows(t, conn), want, err)
		}
	}
}
