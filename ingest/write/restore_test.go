package write_test

import (
	"context"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/ingest/purge"
	"github.com/runlens/runlens/ingest/write"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/rollup"
	"github.com/runlens/runlens/schema"
)

// copyRows copies rows from one store to another one, as an operator does.
func copyRows(t *testing.T, from, to driver.Conn, table, columns, where string) {
	t.Helper()
	rows, err := from.Query(t.Context(), "SELECT "+columns+" FROM "+table+where)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	batch, err := to.PrepareBatch(t.Context(), "INSERT INTO "+table+" ("+columns+")")
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		values := make([]any, len(rows.ColumnTypes()))
		for i, column := range rows.ColumnTypes() {
			switch column.DatabaseTypeName() {
			case "UInt64":
				values[i] = new(uint64)
			case "Bool":
				values[i] = new(bool)
			case "String", "FixedString(16)", "LowCardinality(String)":
				values[i] = new(string)
			default:
				values[i] = new(time.Time)
			}
		}
		if err := rows.Scan(values...); err != nil {
			t.Fatal(err)
		}
		if err := batch.Append(values...); err != nil {
			t.Fatal(err)
		}
	}
	if err := batch.Send(); err != nil {
		t.Fatal(err)
	}
}

// A backup from before a purge has the person. With the list of the store that it replaces, rebuilding the rollup takes
// out what the person did until the purge, and writers keep it out; without, it all counts again. (The embedded engine
// may not RESTORE, for safety. Another store with the same rows stands for what is restored.)
func TestRestoreOfABackupFromBeforeAPurge(t *testing.T) {
	replaced, restored := olaptest.OpenStore(t).Conn(), olaptest.OpenStore(t).Conn()
	for _, conn := range []driver.Conn{replaced, restored} {
		if err := write.NewWriter(conn, quiet).Write(t.Context(), ofAda(-1)); err != nil {
			t.Fatal(err)
		}
	}
	refresher := rollup.New(restored, quiet.Logger, 0)
	refresher.TakeOutLate(func(ctx context.Context, o schema.OrganizationID, identifier string, until time.Time) error {
		return purge.Late(o, identifier, until).Run(ctx, restored, func(purge.Step) {})
	})
	refresh := func() {
		t.Helper()
		if err := refresher.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	refresh()
	purgeAda(t, replaced)
	copyRows(t, replaced, restored, schema.TablePurgedPeople, "person, revision, until, lifted", " FINAL")
	copyRows(t, replaced, restored, schema.TableSecrets, "name, value, created_at", " WHERE name = '"+
		schema.SecretPurgedPeople+"'")
	if err := rollup.Rebuild(t.Context(), restored); err != nil {
		t.Fatal(err)
	}
	refresh()
	if err := write.NewWriter(restored, quiet).Write(t.Context(), ofAda(-1)); err != nil { // from the source once more
		t.Fatal(err)
	}
	outside(t, "restored", restored)
}
