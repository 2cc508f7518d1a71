package olap_test

import (
	"context"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/runlens/runlens/olap/compile"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/plan"
	"github.com/runlens/runlens/olap/query"
)

// The projections serve the statements that they were made for; ClickHouse refuses a statement that does not use the
// one named.
func TestCompiledStatementsUseTheProjections(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	store := olaptest.OpenStore(t)
	conn := store.Conn()
	for _, insert := range []string{
		`INSERT INTO attributions (organization_id, attribution_id, run_id, agent_id, user_identifier, activity_type, ` +
			`run_initiation_type, source, occurred_at)
			SELECT 'acme', generateUUIDv4(), generateUUIDv4(), generateUUIDv4(), concat('user', toString(number % 100), ` +
			`'@example.com'), 'interacted', 'human', 'web',
				toDateTime64('2026-01-01 00:00:00', 3, 'UTC') + number FROM numbers(30000)`,
	} {
		if err := conn.Exec(ctx, insert); err != nil {
			t.Fatal(err)
		}
	}
	for projection, body := range map[string]string{
		"by_person": `{"model":"agent_user_activity","metrics":["attributed_run_count"],` +
			`"filters":[{"member":"user_identifier","op":"eq","value":"user7@example.com"}],"range":{"start":"2026-01-01",` +
			`"end":"2026-01-31","timezone":"UTC"}}`,
	} {
		q, err := query.Parse([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		for _, asOf := range []time.Time{time.Now().Add(time.Hour), {}} {
			statement := compile.Compile(compile.Input{Plan: plan.Of(q).Plan(plan.Facts{AsOf: asOf}), Organization: "acme"})
			args := make([]any, len(statement.Params))
			for i, p := range statement.Params {
				args[i] = clickhouse.Named(p.Name, p.Value)
			}
			forced := clickhouse.Context(ctx,
				clickhouse.WithSettings(clickhouse.Settings{"force_optimize_projection_name": projection}))
			rows, err := conn.Query(forced, statement.SQL, args...)
			if err != nil {
				t.Errorf("%s: %v", projection, err)
				continue
			}
			for rows.Next() {
			}
			if err := rows.Err(); err != nil {
				t.Errorf("%s: %v", projection, err)
			}
			rows.Close()
		}
	}
}
