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

// A source that deletes no agents has NULL AS deleted_at, whatever its SELECT is like.
func TestNothingIsDeleted(t *testing.T) {
	url, conn := layout(t)
	do(t, conn, "INSERT INTO agents VALUES ('acme', gen_random_uuid(), 'Ada'); CREATE TABLE bots AS SELECT * FROM agents")
	const of = "SELECT organization_id, agent_id, name, slug, deleted_at, updated_at FROM "
	const head = "organization_id, agent_id, name, slug, NULL AS deleted_at, updated_at FROM "
	const joined = "SELECT a.organization_id, a.agent_id, a.name, a.slug, b.deleted_at, a.updated_at FROM agents AS a "
	for _, statement := range []string{
		"SELECT DISTINCT " + head + "agents", "SELECT DISTINCT ON (agent_id) " + head + "agents ORDER BY agent_id",
		"SELECT " + head + "agents UNION SELECT " + head + "bots", "SELECT " + head + "agents LIMIT 9",
		of + "(SELECT " + head + "agents UNION ALL SELECT " + head + "bots) AS u ORDER BY agent_id",
		"WITH c AS MATERIALIZED (SELECT " + head + "agents) " + of + "c", of + "(SELECT " + head + "agents OFFSET 0) AS q",
		strings.Replace("SELECT "+head+"agents GROUP BY 1, 2", "name, slug, NULL AS deleted_at, updated_at",
			"min(name) AS name, min(slug) AS slug, NULL AS deleted_at, max(updated_at) AS updated_at", 1),
		joined + "LEFT JOIN (SELECT " + head + "bots) AS b USING (agent_id)",
		"SELECT " + head + "(SELECT *, row_number() OVER (PARTITION BY agent_id) AS n FROM agents) AS w WHERE n = 1",
		"SELECT " + head + "agents WHERE agent_id NOT IN (SELECT agent_id FROM bots WHERE name = '')",
	} {
		if names, err := agentsOf(t, url, statement); err != nil || !slices.Equal(slices.Compact(names), []string{"Ada "}) {
			t.Errorf("%s: %q, %v", statement, names, err)
		}
	}
	// Where a plan does not show what is a text, the rules of a record judge each row alone.
	do(t, conn, "CREATE DOMAIN words AS text; ALTER TABLE agents ADD gone text; INSERT INTO agents VALUES ('acme', "+
		"gen_random_uuid(), 'Bea'); UPDATE agents SET gone = CASE name WHEN 'Ada' THEN '1 soon' ELSE "+
		"'2026-01-01T00:00:00Z' END")
	for _, declared := range []string{"text", "words"} {
		do(t, conn, "ALTER TABLE agents ALTER gone TYPE "+declared)
		names, err := agentsOf(t, url, "SELECT DISTINCT organization_id, agent_id, name, NULL AS slug, gone AS deleted_at, "+
			"updated_at FROM agents")
		slices.Sort(names)
		if err != nil || !slices.Equal(names, []string{"Ada 1 soon", "Bea 2026-01-01T00:00:00Z"}) {
			t.Errorf("%s: %q, %v", declared, names, err)
		}
	}
	do(t, conn, "CREATE DOMAIN moment AS timestamptz; ALTER TABLE agents ALTER deleted_at TYPE moment; "+
		"UPDATE agents SET deleted_at = '2026-01-01Z' WHERE name = 'Ada'")
	names, err := agentsOf(t, url, of+"agents WHERE name = 'Ada'")
	if err != nil || !slices.Equal(names, []string{"Ada 2026-01-01T00:00:00.000000Z"}) {
		t.Errorf("a domain of times: %q, %v", names, err)
	}
}

// agentsOf checks the default mapping with another SELECT of agents, and reads their names with their deleted_at.
func agentsOf(t *testing.T, url, statement string) (found []string, err error) {
	t.Helper()
	_, of, _ := strings.Cut(postgres.DefaultMapping, "-- record: agent\n")
	of, _, _ = strings.Cut(of, "\n\n-- record:")
	database := open(t, url, of, statement)
	if err := database.Check(t.Context()); err != nil {
		return nil, err
	}
	fields := normalize.Fields(normalize.KindAgent)
	_, err = database.Changed(t.Context(), normalize.KindAgent, postgres.Key{}, 9,
		func(r *source.Record, _ postgres.Key) error {
			value := func(field string) string { return string(r.Raw.Values[slices.Index(fields, field)]) }
			found = append(found, value("name")+" "+value("deleted_at"))
			return nil
		})
	return found, err
}
