package olap_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/compile"
	"github.com/runlens/runlens/olap/exec"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/plan"
	"github.com/runlens/runlens/olap/query"
	"github.com/runlens/runlens/olap/rollup"
	"github.com/runlens/runlens/schema"
)

// Sums come from the projections, and the statement of one organization reads no granule of another but at the borders.
func TestSumsUseTheProjections(t *testing.T) {
	t.Parallel()
	store := olaptest.OpenStore(t)
	conn := store.Conn()
	for _, organization := range []string{"abel", "acme", "zoe"} {
		for _, insert := range []string{
			`INSERT INTO runs (organization_id, run_id, created_at, agent_id, updated_at)
				SELECT '` + organization + `', generateUUIDv4(), toDateTime64('2026-01-01 00:00:00', 3, 'UTC') + 40 * number, ` +
				`toUUID('00000000-0000-0000-0000-000000000001'), now64(3) FROM numbers(50000)`,
			`INSERT INTO attributions (organization_id, attribution_id, run_id, agent_id, user_identifier, activity_type, ` +
				`run_initiation_type, source, occurred_at)
				SELECT '` + organization + `', generateUUIDv4(), generateUUIDv4(), ` +
				`toUUID('00000000-0000-0000-0000-000000000001'), 'ada@example.com', 'interacted', 'human', 'web',
					toDateTime64('2026-01-01 00:00:00', 3, 'UTC') + 40 * number FROM numbers(50000)`,
		} {
			execute(t, conn, insert)
		}
	}
	refreshed(t, rollup.New(conn, quiet, 0))
	for _, c := range []struct {
		projection, body string // a projection or a table
		granules         uint64 // that the organization's rows fill; 1,024 rows each in a projection
	}{
		{"by_quarter", `{"model":"agent_runs","metrics":["run_count","run_success_rate"],"range":RANGE}`, 3},
		{"by_quarter", `{"model":"agent_runs","metrics":["run_count"],"dimensions":["day"],"filters":[{"member":"day",` +
			`"op":"eq","value":"2026-01-03"}],"range":RANGE}`, 3},
		{"by_agent", `{"model":"agent_runs","metrics":["failed_run_count"],"dimensions":["day","agent_id"],"range":RANGE}`,
			1},
		{"by_agent", `{"model":"agent_runs","metrics":["failed_run_count"],"filters":[{"member":"agent_id","op":"eq",` +
			`"value":"00000000-0000-0000-0000-000000000001"}],"range":RANGE}`, 1},
		{"by_user_type", `{"model":"agent_runs","metrics":["active_run_count"],"dimensions":["user_type","day"],` +
			`"range":RANGE}`, 3},
		{"by_initiator_key", `{"model":"agent_runs","metrics":["unique_initiator_count"],"range":{"start":"2026-01-01",` +
			`"end":"2026-05-31","timezone":"UTC"}}`, 1},
		{"by_initiator_key", `{"model":"agent_runs","metrics":["completed_run_count"],"dimensions":["user_identifier"],` +
			`"range":{"start":"2026-01-01","end":"2026-01-28","timezone":"UTC"}}`, 1},
		{"by_quarter", `{"model":"agent_user_activity","metrics":["interaction_count"],"dimensions":["day"],"range":RANGE}`,
			3},
		{"by_agent", `{"model":"agent_user_activity","metrics":["interaction_count"],"dimensions":["agent_id"],` +
			`"range":RANGE}`, 1},
		// What no projection has comes from the rollup rows themselves, 256 a granule.
		{"rollup_runs", `{"model":"agent_runs","metrics":["unique_initiator_count","run_count"],"dimensions":["day"],` +
			`"range":RANGE}`, 196},
		{"rollup_runs", `{"model":"agent_runs","metrics":["completed_run_count"],"dimensions":["user_identifier",` +
			`"agent_id"],"range":RANGE}`, 196},
		{"rollup_attributions", `{"model":"agent_user_activity","metrics":["interaction_count"],` +
			`"dimensions":["activity_type"],"range":RANGE}`, 196},
	} {
		plan, read := explain(t, conn, statementOf(t, c.body, time.Now()))
		if !strings.Contains(plan, "ReadFromMergeTree ("+c.projection+")") &&
			!strings.Contains(plan, "ReadFromMergeTree ("+store.Database()+"."+c.projection+")") {
			t.Errorf("%s: %s is not used:\n%s", c.body, c.projection, plan)
		}
		if read > c.granules+1 {
			t.Errorf("%s: %d granules are read, want %d and one at the border:\n%s", c.body, read, c.granules, plan)
		}
	}
}

// What was stored since is found by when it was stored, and records in the rollup by their event clock: without reading
// what did not change, or another organization.
func TestDeltaUsesTheSortingKeys(t *testing.T) {
	t.Parallel()
	store := olaptest.OpenStore(t)
	conn := store.Conn()
	for _, organization := range []string{"abel", "acme", "zoe"} {
		execute(t, conn, `INSERT INTO runs (organization_id, run_id, created_at, agent_id, updated_at)
			SELECT '`+organization+`', reinterpretAsUUID(sipHash128(number)), toDateTime64('2026-01-01 00:00:00', 3, 'UTC') + `+
			`40 * number, toUUID('00000000-0000-0000-0000-000000000001'), now64(3) FROM numbers(50000)`)
	}
	refreshed(t, rollup.New(conn, quiet, 0))
	before := time.Now()
	execute(t, conn, `INSERT INTO runs (organization_id, run_id, created_at, agent_id, status, updated_at)
		SELECT 'acme', reinterpretAsUUID(sipHash128(number)), toDateTime64('2026-01-01 00:00:00', 3, 'UTC') + 40 * number, `+
		`toUUID('00000000-0000-0000-0000-000000000001'), 'COMPLETED', now64(3) + 1 FROM numbers(1000, 5)`)
	execute(t, conn, "OPTIMIZE TABLE runs FINAL")
	statement := statementOf(t, `{"model":"agent_runs","metrics":["run_count"],"range":RANGE}`, before)
	plan, read := explain(t, conn, statement)
	// Three of the sums; one of the five changed rows, which lie in one granule of 256; one or two of their rollup rows.
	if !strings.Contains(plan, "ReadFromMergeTree (by_last_stored_at)") || read > 3+1+1+2 {
		t.Errorf("%d granules are read, want at most 7, by storing:\n%s", read, plan)
	}
}

// What is asked of one person is read from the projection that was made for it.
func TestCompiledStatementsUseTheProjectionByPerson(t *testing.T) {
	t.Parallel()
	conn := olaptest.OpenStore(t).Conn()
	execute(t, conn, `INSERT INTO attributions (organization_id, attribution_id, run_id, agent_id, user_identifier, `+
		`activity_type, run_initiation_type, source, occurred_at)
		SELECT 'acme', generateUUIDv4(), generateUUIDv4(), generateUUIDv4(), concat('user', toString(number % 100), `+
		`'@example.com'), 'interacted', 'human', 'web',
			toDateTime64('2026-01-01 00:00:00', 3, 'UTC') + number FROM numbers(30000)`)
	q, err := query.Parse([]byte(`{"model":"agent_user_activity","metrics":["attributed_run_count"],` +
		`"filters":[{"member":"user_identifier","op":"eq","value":"user7@example.com"}],"range":{"start":"2026-01-01",` +
		`"end":"2026-01-31","timezone":"UTC"}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, asOf := range []time.Time{time.Now().Add(time.Hour), {}} {
		statement := compile.Compile(compile.Input{Plan: plan.Of(q).Plan(plan.Facts{AsOf: asOf}), Organization: "acme"})
		if plan, _ := explain(t, conn, statement); !strings.Contains(plan, "ReadFromMergeTree (by_person)") {
			t.Errorf("as of %v the projection is not used:\n%s", asOf, plan)
		}
	}
}

// explain is ClickHouse's plan of a statement, and how many granules it reads, but for those of the log, which has few
// entries in as many parts.
func explain(t *testing.T, conn driver.Conn, statement compile.Statement) (plan string, granules uint64) {
	t.Helper()
	lines, estimates, err := exec.Explain(t.Context(), conn, statement)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range estimates {
		if e.Table != schema.TableRollupLog {
			granules += e.Marks
		}
	}
	if plan = strings.Join(lines, "\n"); granules == 0 {
		t.Fatalf("nothing says how many granules are read:\n%s", plan)
	}
	return plan, granules
}

// statementOf compiles a request of acme for January 2026, in which everything is refreshed.
func statementOf(t *testing.T, body string, watermark time.Time) compile.Statement {
	t.Helper()
	q, err := query.Parse([]byte(strings.ReplaceAll(body, "RANGE", `{"start":"2026-01-01","end":"2026-01-31",`+
		`"timezone":"Europe/Stockholm"}`)))
	if err != nil {
		t.Fatal(err)
	}
	p := plan.Of(q).Plan(plan.Facts{AsOf: time.Now().Add(time.Hour), Records: 10_000_000, Watermark: watermark,
		Lease: 1 << 60, Damage: 1 << 60})
	if p.Delta != plan.DeltaInline {
		t.Errorf("%s: read as rows", body)
	}
	return compile.Compile(compile.Input{Plan: p, Organization: "acme"})
}
