package postgres_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/source"
	"github.com/runlens/runlens/ingest/source/postgres"
)

// A time without a zone that a mapping makes one with a zone is found wherever the mapping does it, and the column is
// named. With the zone in the mapping it is accepted.
func TestCastsBelowTheTop(t *testing.T) {
	url, conn := layout(t)
	do(t, conn, `DO $$ BEGIN EXECUTE 'ALTER DATABASE ' || current_database() || ' SET TimeZone = ''America/New_York''';
		END $$;
		CREATE TABLE job (LIKE runs) PARTITION BY HASH (run_id);
		ALTER TABLE job ALTER created_at TYPE timestamp;
		CREATE TABLE job_0 PARTITION OF job FOR VALUES WITH (MODULUS 2, REMAINDER 0);
		CREATE TABLE job_1 PARTITION OF job FOR VALUES WITH (MODULUS 2, REMAINDER 1)`)
	const head = `organization_id, run_id, agent_id, kind, parent_run_id, status, initiator_identifier, initiator_name,
		initiator_type, `
	const cast, right = "created_at::timestamptz", "created_at AT TIME ZONE 'America/New_York'"
	for name, statement := range map[string]string{
		"partitions": "SELECT " + head + "X AS created_at, updated_at FROM job",
		"the second part": "SELECT " + head + "created_at, updated_at FROM runs UNION ALL SELECT " + head +
			"X, updated_at FROM job",
		"a sorted union": "SELECT * FROM (SELECT " + head + "created_at, updated_at FROM runs UNION ALL SELECT " + head +
			"X, updated_at FROM job) AS u ORDER BY run_id",
		"WITH": "WITH c AS MATERIALIZED (SELECT " + head + "X AS created_at, updated_at FROM job_0) SELECT " + head +
			"created_at, updated_at FROM c",
		"a subquery": "SELECT " + head + "created_at, updated_at FROM (SELECT " + head + "X AS created_at, updated_at " +
			"FROM job_0 OFFSET 0) AS q",
		"another row": "SELECT " + head + "(SELECT X FROM job_0 AS j WHERE j.run_id = r.run_id) AS created_at, updated_at " +
			"FROM runs AS r",
		"DISTINCT": "SELECT DISTINCT " + head + "X AS created_at, updated_at FROM job_0",
		"a view":   "SELECT " + head + "X AS created_at, updated_at FROM (TABLE job_0) AS v",
	} {
		t.Run(name, func(t *testing.T) {
			for expression, want := range map[string]string{
				cast: "created_at has no time zone, and that of the database is America/New_York", right: "",
			} {
				if err := checkRuns(t, url, strings.ReplaceAll(statement, "X", expression)); want == "" && err != nil ||
					want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
					t.Errorf("%s: %v, want %q", expression, err, want)
				}
			}
		})
	}
}

// A number where a text belongs is refused with what fixes the mapping, which then is accepted.
func TestNumbers(t *testing.T) {
	url, _ := layout(t)
	for name, c := range map[string]struct{ number, says, fixed string }{
		"organization_id": {"42 AS organization_id", "write X::text AS organization_id,", "42::text AS organization_id"},
		"run_id":          {"42 AS run_id", "write md5('run:' || X)::uuid AS run_id,", "md5('run:' || 42)::uuid AS run_id"},
		"parent_run_id": {
			"42 AS parent_run_id", "write md5('run:' || X)::uuid AS parent_run_id,",
			"md5('run:' || 42)::uuid AS parent_run_id",
		},
	} {
		statement := func(column string) string {
			return "SELECT " + column + ", " + strings.Join(slices.DeleteFunc(slices.Clone(normalize.Fields(normalize.KindRun)),
				func(field string) bool { return field == name }), ", ") + " FROM runs"
		}
		if err := checkRuns(t, url, statement(c.number)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %s", name, err, c.says)
		}
		if err := checkRuns(t, url, statement(c.fixed)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A SELECT of a mapping may end with a semicolon, and with comments before and after it.
func TestEndsOfSelects(t *testing.T) {
	url, _ := layout(t)
	statement := "SELECT " + strings.Join(normalize.Fields(normalize.KindRun), ", ") + " FROM runs"
	for _, end := range []string{"", ";", " ;\n", "; -- all of them", ";\n-- the next\n-- kind\n", "; /* a\n b */ -- c",
		";;", " -- all; of them", " -- of ours\n;", " WHERE status <> ';'", " WHERE status <> '; '; -- ';"} {
		if err := checkRuns(t, url, statement+end); err != nil {
			t.Errorf("%q: %v", end, err)
		}
	}
}

// checkRuns checks the default mapping with another SELECT of runs.
func checkRuns(t *testing.T, url, statement string) error {
	t.Helper()
	_, rest, _ := strings.Cut(postgres.DefaultMapping, "-- record: run\n")
	of, _, _ := strings.Cut(rest, "-- record:")
	return open(t, url, of, statement+"\n\n").Check(t.Context())
}

// Every time of a mapping has a type of times, so that no row can have one that PostgreSQL can't read. A NULL is none.
func TestTimesThatAreTexts(t *testing.T) {
	url, conn := layout(t)
	do(t, conn, "INSERT INTO agents VALUES ('acme', gen_random_uuid(), 'Ada'); CREATE TABLE bots AS SELECT * FROM agents")
	for deleted, want := range map[string]string{
		"deleted_at":                  "",
		"NULL AS deleted_at":          "",
		"deleted_at::timestamp":       "",
		"deleted_at::date":            "",
		"NULL::date AS deleted_at":    "",
		"deleted_at::text":            "the SELECT of record agent: deleted_at must have the type timestamptz",
		"'' AS deleted_at":            "the SELECT of record agent: deleted_at must have the type timestamptz",
		"1 AS deleted_at":             "the SELECT of record agent: deleted_at must have the type timestamptz",
		"NULL::integer AS deleted_at": "the SELECT of record agent: deleted_at must have the type timestamptz",
	} {
		for _, table := range []string{"agents", "agents UNION ALL SELECT organization_id, agent_id, name, slug, " + deleted +
			", updated_at FROM bots"} {
			database := open(t, url, "deleted_at, updated_at\nFROM agents", deleted+", updated_at\nFROM "+table)
			err := database.Check(t.Context())
			if want == "" && err == nil { // and it can be read
				_, err = database.Changed(t.Context(), normalize.KindAgent, postgres.Key{}, 2,
					func(*source.Record, postgres.Key) error { return nil })
			}
			if want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
				t.Errorf("%s of %s: %v, want %q", deleted, table, err, want)
			}
		}
	}
}
