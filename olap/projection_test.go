package olap_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/runlens/runlens/olap/compile"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/plan"
	"github.com/runlens/runlens/olap/query"
)

// What is asked of one person is read from the projection that was made for it; ClickHouse refuses a statement that
// does not use the one named.
func TestCompiledStatementsUseTheProjectionByPerson(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	conn := olaptest.OpenStore(t).Conn()
	err := conn.Exec(ctx, `INSERT INTO attributions (organization_id, attribution_id, run_id, agent_id, user_identifier, `+
		`activity_type, run_initiation_type, source, occurred_at)
		SELECT 'acme', generateUUIDv4(), generateUUIDv4(), generateUUIDv4(), concat('user', toString(number % 100), `+
		`'@example.com'), 'interacted', 'human', 'web',
			toDateTime64('2026-01-01 00:00:00', 3, 'UTC') + number FROM numbers(30000)`)
	if err != nil {
		t.Fatal(err)
	}
	q, err := query.Parse([]byte(`{"model":"agent_user_activity","metrics":["attributed_run_count"],` +
		`"filters":[{"member":"user_identifier","op":"eq","value":"user7@example.com"}],"range":{"start":"2026-01-01",` +
		`"end":"2026-01-31","timezone":"UTC"}}`))
	if err != nil {
		t.Fatal(err)
	}
	forced := clickhouse.Context(ctx,
		clickhouse.WithSettings(clickhouse.Settings{"force_optimize_projection_name": "by_person"}))
	for _, asOf := range []time.Time{time.Now().Add(time.Hour), {}} {
		statement := compile.Compile(compile.Input{Plan: plan.Of(q).Plan(plan.Facts{AsOf: asOf}), Organization: "acme"})
		args := make([]any, len(statement.Params))
		for i, p := range statement.Params {
			args[i] = clickhouse.Named(p.Name, p.Value)
		}
		rows, err := conn.Query(forced, statement.SQL, args...)
		if err != nil {
			t.Error(err)
			continue
		}
		for rows.Next() {
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			t.Error(err)
		}
	}
}
