package postgres_test

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/source"
	"github.com/runlens/runlens/ingest/source/postgres"
	"github.com/runlens/runlens/ingest/source/postgrestest"
	"github.com/runlens/runlens/olap/doctor/finding"
)

// layout starts a server with the default layout, whose triggers leave updated_at alone.
func layout(t *testing.T) (address string, conn *pgx.Conn) {
	t.Helper()
	address = postgrestest.New(t).URL()
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	do(t, conn, postgres.Layout)
	do(t, conn, "SET session_replication_role = replica")
	return address, conn
}

func do(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// open connects with the default mapping, in which some texts are replaced.
func open(t *testing.T, url string, oldNew ...string) *postgres.Database {
	t.Helper()
	mapping, err := postgres.ParseMapping(strings.NewReplacer(oldNew...).Replace(postgres.DefaultMapping))
	if err != nil {
		t.Fatal(err)
	}
	database, err := postgres.Open(t.Context(), url, mapping)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(database.Close)
	return database
}

func until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !condition(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still not: %s", what)
		}
	}
}

// A bulk update gives many rows one updated_at. Reading them page by page sorts nothing on the source's disk. The plan
// and the settings are what is proved: PostgreSQL 17 sorts such pages by small groups with enable_sort on as well, with
// fresh and with old statistics and 64 kB of work_mem, so that no table of a test's size makes temporary files here.
func TestPagesOfEqualTimes(t *testing.T) {
	ctx := t.Context()
	url, conn := layout(t)
	const rows, limit = 60_000, 5_000
	do(t, conn, `INSERT INTO runs (organization_id, run_id, agent_id, status, updated_at)
		SELECT 'acme', gen_random_uuid(), gen_random_uuid(), 'RUNNING', '2026-01-01'
		FROM (SELECT generate_series(1, 60000)) AS s`)
	// As in a larger table: parallel workers seem to be worth it.
	do(t, conn, "ANALYZE runs; DO $$ BEGIN EXECUTE 'ALTER DATABASE ' || current_database() || "+
		"' SET parallel_setup_cost = 0';"+
		"EXECUTE 'ALTER DATABASE ' || current_database() || ' SET min_parallel_table_scan_size = 0'; END $$")
	database := open(t, url, "initiator_name", "concat_ws(' ', current_setting('jit'), current_setting('enable_sort'), "+
		"current_setting('max_parallel_workers_per_gather')) AS initiator_name")
	read := 0
	for at, n := (postgres.Key{}), limit; n == limit; read += n {
		plan, err := database.PagePlan(ctx, normalize.KindRun, at)
		if want := []string{"Limit", "Incremental Sort", "Index Scan"}; err != nil || !slices.Equal(plan, want) {
			t.Fatalf("after %v the plan is %v, %v, want %v", at, plan, err, want)
		}
		n, err = database.Changed(ctx, normalize.KindRun, at, limit, func(r *source.Record, key postgres.Key) error {
			if field := slices.Index(normalize.Fields(normalize.KindRun), "initiator_name"); read == 0 &&
				string(r.Raw.Values[field]) != "off off 0" {
				t.Fatalf("the settings are %q", r.Raw.Values[field])
			}
			at = key
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if read != rows {
		t.Errorf("read %d rows, want %d", read, rows)
	}
	if missing, err := database.MissingIndex(ctx, normalize.KindRun); err != nil || missing != "" {
		t.Errorf("missing: %q, %v", missing, err)
	}
	database.Close()
	noTemporaryFiles(t, conn)
}

// Where the index is missing, a page is sorted in the source's memory.
func TestPagesWithoutAnIndex(t *testing.T) {
	ctx := t.Context()
	url, conn := layout(t)
	do(t, conn, `DROP INDEX runs_changes; INSERT INTO runs (organization_id, run_id, agent_id, status,
		initiator_identifier, updated_at)
		SELECT 'acme', gen_random_uuid(), gen_random_uuid(), 'RUNNING', 'somebody' || g || '@example.com',
			timestamptz '2026-01-01Z' + g * interval '1 second' FROM (SELECT generate_series(1, 60000) AS g) AS s`)
	database := open(t, url)
	n, err := database.Changed(ctx, normalize.KindRun, postgres.Key{}, 20_000,
		func(*source.Record, postgres.Key) error { return nil })
	if err != nil || n != 20_000 {
		t.Fatalf("%d rows, %v", n, err)
	}
	database.Close()
	noTemporaryFiles(t, conn)
}

// noTemporaryFiles wants that the sessions of the database have written none.
func noTemporaryFiles(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	// PostgreSQL counts what a session did when the session ends, at the latest.
	until(t, "the sessions have ended", func() bool {
		return number(t, conn, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'runlens'") == 0
	})
	if n := number(t, conn, "SELECT temp_bytes FROM pg_stat_database WHERE datname = current_database()"); n != 0 {
		t.Errorf("the source wrote %d bytes of temporary files", n)
	}
}

func number(t *testing.T, conn *pgx.Conn, sql string) (n int64) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), sql).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// Where an index is missing, its statement is named, and creating it is enough.
func TestMissingIndex(t *testing.T) {
	url, conn := layout(t)
	do(t, conn, `CREATE SCHEMA "Other"; CREATE TABLE "Other".job AS SELECT * FROM runs;
		ALTER TABLE "Other".job ADD "Changed" timestamptz`)
	for name, c := range map[string]struct{ before, from, updatedAt, want string }{
		"no index":      {"DROP INDEX agents_changes", "FROM runs", "updated_at", ""},
		"another table": {"", `FROM "Other".job AS j`, `j."Changed" AS updated_at`, `ON "Other"."job" ("Changed", run_id)`},
		"the clock only": {
			`CREATE INDEX ON "Other".job (updated_at)`, `FROM "Other".job`, "updated_at", "(updated_at, run_id)",
		},
		"an expression": {
			"", `FROM "Other".job`, "coalesce(updated_at, created_at) AS updated_at",
			"(((COALESCE(updated_at, created_at))), run_id)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if c.before != "" {
				do(t, conn, c.before)
			}
			database := open(t, url, "created_at, updated_at\nFROM runs", "created_at, "+c.updatedAt+"\n"+c.from)
			missing, err := database.MissingIndex(t.Context(), normalize.KindRun)
			if c.want == "" {
				if err != nil || missing != "" {
					t.Errorf("missing: %q, %v", missing, err)
				}
				missing, err = database.MissingIndex(t.Context(), normalize.KindAgent)
				c.want = `ON "public"."agents" (updated_at, agent_id)`
			}
			if err != nil || !strings.HasPrefix(missing, "CREATE INDEX CONCURRENTLY ON ") ||
				!strings.HasSuffix(missing, c.want) {
				t.Fatalf("%q, %v, want %q", missing, err, c.want)
			}
			do(t, conn, missing)
			for _, kind := range normalize.Kinds {
				if missing, err := database.MissingIndex(t.Context(), kind); err != nil || missing != "" {
					t.Errorf("with the index, missing: %q, %v", missing, err)
				}
			}
		})
	}
}

// The encoding of the database, and how its sessions read strings, make no difference.
func TestEncodings(t *testing.T) {
	address, conn := encoded(t, "LATIN1")
	do(t, conn, postgres.Layout)
	do(t, conn, "INSERT INTO agents VALUES ('acme', gen_random_uuid(), 'Zo' || chr(235) || chr(92) || 'n')")
	database := open(t, address)
	if err := database.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	var names []string
	visit := func(r *source.Record, key postgres.Key) error {
		names = append(names, string(r.Raw.Values[slices.Index(normalize.Fields(normalize.KindAgent), "name")]))
		return nil
	}
	if _, err := database.Changed(t.Context(), normalize.KindAgent, postgres.Key{}, 10, visit); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(names, []string{"Zo\u00eb\\n"}) {
		t.Errorf("%q", names)
	}
}

// A database of bytes without an encoding is refused before anything is read.
func TestNoEncoding(t *testing.T) {
	address, conn := encoded(t, "SQL_ASCII")
	do(t, conn, postgres.Layout)
	database := open(t, address)
	const want = "the database has the encoding SQL_ASCII, in which a text may be any bytes"
	if err := database.Check(t.Context()); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	mapping := slices.IndexFunc(database.Examine(t.Context(), false), func(f finding.Finding) bool {
		return f.Check == "source mapping" && f.Result == finding.Problem && strings.HasPrefix(f.Says, want)
	})
	if mapping < 0 {
		t.Error("doctor does not say so")
	}
}

// encoded makes a database of an encoding, whose sessions read strings as they did before the standard.
func encoded(t *testing.T, encoding string) (address string, conn *pgx.Conn) {
	t.Helper()
	server, outer := layout(t)
	name := "runlens_" + strings.ToLower(encoding)
	do(t, outer, "DROP DATABASE IF EXISTS "+name)
	do(t, outer, "CREATE DATABASE "+name+" ENCODING '"+encoding+"' LOCALE 'C' TEMPLATE template0")
	t.Cleanup(func() { outer.Exec(context.Background(), "DROP DATABASE "+name+" WITH (FORCE)") })
	do(t, outer, "ALTER DATABASE "+name+" SET standard_conforming_strings = off")
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	conn, err = pgx.Connect(t.Context(), u.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return u.String(), conn
}
