package write_test

import (
	"context"
	"errors"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/ingest/write"
	"github.com/runlens/runlens/olap/olaptest"
)

// An attempt may store rows and fail before they are counted. The one that repeats it counts them.
func TestRepeatedInsertsAreCounted(t *testing.T) {
	ctx := context.Background()
	conn := olaptest.OpenStore(t).Conn()
	if err := conn.Exec(ctx, "ALTER TABLE insert_counters ADD CONSTRAINT never CHECK rows = 0"); err != nil {
		t.Fatal(err)
	}
	b := batch(3)
	if err := write.NewWriter(conn, quiet).Write(ctx, b); err == nil {
		t.Fatal("written without counting")
	}
	if n := rows(t, conn); n != 3 {
		t.Fatalf("%d rows are stored before they are counted, want 3", n)
	}
	if err := conn.Exec(ctx, "ALTER TABLE insert_counters DROP CONSTRAINT never"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []uint64{3, 6} { // what is counted twice is only read twice
		if err := write.NewWriter(conn, quiet).Write(ctx, b); err != nil {
			t.Fatal(err)
		}
		if n := counted(t, conn); n != want || records(t, conn) != 3 {
			t.Errorf("%d rows are counted for %d records, want %d for 3", n, records(t, conn), want)
		}
	}
}

// Whoever finds rows counted finds them stored, in all partitions: what is cached of the rows is valid while the count
// is the same.
func TestRowsAreStoredBeforeTheyAreCounted(t *testing.T) {
	conn := olaptest.OpenStore(t).Conn()
	writer := write.NewWriter(conn, quiet)
	done := make(chan error, 1)
	go func() {
		var err error
		for range 20 {
			err = errors.Join(err, writer.Write(context.Background(), batch(12)))
		}
		done <- err
	}()
	for {
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			return
		default:
		}
		before := counted(t, conn)
		if stored := rows(t, conn); stored < before {
			t.Fatalf("%d rows are counted, %d are stored", before, stored)
		}
	}
}

// counted is how many rows of acme are counted.
func counted(t *testing.T, conn driver.Conn) (n uint64) {
	t.Helper()
	if err := conn.QueryRow(context.Background(), "SELECT sum(rows) FROM insert_counters WHERE source = 'attributions' "+
		"AND organization_id = 'acme'").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
