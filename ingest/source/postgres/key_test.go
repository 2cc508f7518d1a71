package postgres_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/source"
	"github.com/runlens/runlens/ingest/source/postgres"
)

// Every instant and every date of PostgreSQL has its place in the order of changes, to the microsecond, or is too late
// for one. What is no RFC 3339 is given to the rules as PostgreSQL writes it.
func TestEveryTime(t *testing.T) {
	type row struct {
		written string
		at      time.Time
		text    string // of the record
	}
	date := func(year, month, day int) time.Time {
		return time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
	}
	const quarter = 250 * time.Millisecond
	for declared, rows := range map[string][]row{
		"timestamptz": {
			{"4714-11-24 00:00:00Z BC", date(-4713, 11, 24), "4714-11-24 00:00:00+00 BC"},
			{"0001-12-31 23:59:59.75Z BC", date(1, 1, 1).Add(-quarter), "0001-12-31 23:59:59.75+00 BC"},
			{"1969-12-31 23:59:59.75Z", date(1970, 1, 1).Add(-quarter), "1969-12-31T23:59:59.750000Z"},
			{"1970-01-01 00:00:00.000001Z", date(1970, 1, 1).Add(time.Microsecond), "1970-01-01T00:00:00.000001Z"},
			{"2026-01-01 01:00:00+01", date(2026, 1, 1), "2026-01-01T00:00:00.000000Z"},
			{"294246-12-31 23:59:59.999999Z", date(294247, 1, 1).Add(-time.Microsecond), "294246-12-31 23:59:59.999999+00"},
			{"294247-01-01 00:00:00Z", postgres.TooLate, "294247-01-01 00:00:00+00"},
			{"294276-12-31 23:59:59.999999Z", postgres.TooLate, "294276-12-31 23:59:59.999999+00"},
		},
		"timestamp": {
			{"1969-12-31 23:59:59.75", date(1970, 1, 1).Add(-quarter), "1969-12-31T23:59:59.750000Z"},
			{"294276-12-31 23:59:59.999999", postgres.TooLate, "294276-12-31 23:59:59.999999"},
		},
		"date": {
			{"4714-11-24 BC", date(-4713, 11, 24), "4714-11-24 BC"},
			{"2026-01-01", date(2026, 1, 1), "2026-01-01T00:00:00.000000Z"},
			{"300000-01-01", postgres.TooLate, "300000-01-01"},
			{"5874897-12-31", postgres.TooLate, "5874897-12-31"},
		},
	} {
		t.Run(declared, func(t *testing.T) {
			url, conn := layout(t)
			do(t, conn, "ALTER TABLE runs ALTER created_at TYPE "+declared+", ALTER updated_at TYPE "+declared)
			for i, r := range rows {
				do(t, conn, fmt.Sprintf(`INSERT INTO runs (organization_id, run_id, agent_id, status, created_at, updated_at)
					VALUES ('acme', lpad('%d', 32, '0')::uuid, gen_random_uuid(), 'RUNNING', '%[2]s', '%[2]s')`, i, r.written))
			}
			database := open(t, url)
			if err := database.Check(t.Context()); err != nil {
				t.Fatal(err)
			}
			clock := slices.Index(normalize.Fields(normalize.KindRun), "created_at")
			var after postgres.Key
			for _, want := range rows { // each a page of its own
				read := database.Changed
				if (postgres.Key{At: want.at}).Timeless() {
					read = database.Timeless
				}
				visit := func(r *source.Record, key postgres.Key) error {
					if text := string(r.Raw.Values[clock]); !key.At.Equal(want.at) || text != want.text {
						t.Errorf("%s: %v and %q, want %v and %q", want.written, key.At, text, want.at, want.text)
					}
					after = key
					return nil
				}
				if n, err := read(t.Context(), normalize.KindRun, after, 1, visit); err != nil || n != 1 {
					t.Fatalf("%s: %d records, %v", want.written, n, err)
				}
			}
			for _, read := range []pages{database.Changed, database.Timeless} {
				n, err := read(t.Context(), normalize.KindRun, after, 1, func(*source.Record, postgres.Key) error { return nil })
				if err != nil || n != 0 {
					t.Errorf("after the last one: %d records, %v", n, err)
				}
			}
		})
	}
}

type pages = func(context.Context, normalize.Kind, postgres.Key, int, func(*source.Record, postgres.Key) error) (int,
	error)
