package olap_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/plan"
	"github.com/runlens/runlens/olap/query"
	"github.com/runlens/runlens/olap/rollup"
)

// counted is the last statement that counted runs.
func counted(conn *olaptest.Held) string {
	for _, sql := range slices.Backward(conn.Texts()) {
		if strings.Contains(sql, "m_run_count") && !strings.HasPrefix(sql, "EXPLAIN") {
			return sql
		}
	}
	return ""
}

// An explanation has the strategy and the statement that the same question has otherwise, and what it read.
func TestExplain(t *testing.T) {
	t.Parallel()
	store := olaptest.OpenStore(t).Conn()
	const stored = 40
	var records olaptest.Records
	for n := range stored {
		records.Runs = append(records.Runs, runOn(n, 1+n%28, "COMPLETED"))
	}
	olaptest.Load(t, store, records)
	refreshed(t, rollup.New(store, quiet, 0))
	request, err := request(acme, []byte(runs))
	if err != nil {
		t.Fatal(err)
	}
	const slower = plan.SlowerThanChosen
	for _, c := range []struct {
		name      string
		large     bool
		more      bool // one run is stored after the refresh
		reads     string
		delta     string
		rejected  []plan.Rejection
		table     string
		reading   string // the table, or its projection
		tableRows uint64 // of which so many are read
	}{
		{"small", false, false, "base", "", []plan.Rejection{
			{Strategy: plan.RollupAggregates, Reason: plan.RowsBelowThreshold},
			{Strategy: plan.RollupRows, Reason: plan.RowsBelowThreshold},
		}, "runs", "runs)", stored},
		// The 40 runs are on 28 days at one time of day each: so many quarters of an hour.
		{"large", true, false, "rollup_aggregates", "none", []plan.Rejection{
			{Strategy: plan.RollupRows, Reason: slower}, {Strategy: plan.Base, Reason: slower},
		}, "rollup_runs", "(by_quarter)", 28},
		{"large with a delta", true, true, "rollup_aggregates", "cached", []plan.Rejection{
			{Strategy: plan.RollupRows, Reason: slower}, {Strategy: plan.Base, Reason: slower},
		}, "rollup_runs", "(by_quarter)", 28},
	} {
		if c.more {
			olaptest.Load(t, store, olaptest.Records{Runs: []olaptest.Run{runOn(stored, 3, "COMPLETED")}})
		}
		conn := olaptest.Hold(store)
		engine := func() *olap.Engine {
			e := newEngine(conn)
			if c.large {
				e.Use(asLarge)
			}
			return e
		}
		var x *olap.Explanation
		// Until the insert is old enough to be counted, the delta is not cached.
		for tries := 0; tries < 100 && (x == nil || x.Strategy.Delta != c.delta); tries++ {
			if x, err = engine().Explain(t.Context(), request); err != nil {
				t.Fatal(c.name, err)
			}
		}
		if x.Statement.SQL != counted(conn) {
			t.Errorf("%s: the statement differs from what was sent:\n%s\n%s", c.name, x.Statement.SQL, counted(conn))
		}
		result, err := engine().Run(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		if x.Statement.SQL != counted(conn) || !reflect.DeepEqual(x.Strategy, result.Strategy()) {
			t.Errorf("%s: %+v, otherwise %+v with\n%s\n%s", c.name, x.Strategy, result.Strategy(), x.Statement.SQL,
				counted(conn))
		}
		if x.Strategy.Reads != c.reads || x.Strategy.Delta != c.delta || !reflect.DeepEqual(x.Rejected, c.rejected) {
			t.Errorf("%s: %+v, rejected %+v, want %+v", c.name, x.Strategy, x.Rejected, c.rejected)
		}
		var rows uint64
		for _, e := range x.Estimates {
			if e.Table == c.table {
				rows += e.Rows
			}
		}
		plan := strings.Join(x.Plan, "\n")
		if rows != c.tableRows || !strings.Contains(plan, c.reading) || !strings.Contains(plan, "ReadFromMergeTree") {
			t.Errorf("%s: %d rows of %s, want %d:\n%+v\n%s", c.name, rows, c.table, c.tableRows, x.Estimates, plan)
		}
		if x.Rows != 1 || x.AsOf.IsZero() || x.Cost.Rows < c.tableRows || x.All.Rows < x.Cost.Rows ||
			x.Cost.Elapsed <= 0 || x.Execution < x.Cost.Elapsed || x.Facts <= 0 || x.Total < x.Facts+x.Execution {
			x.Plan, x.Statement.SQL = nil, ""
			t.Errorf("%s: %+v", c.name, x)
		}
	}
	request.Query.Cursor = "forged"
	var refused *query.Error
	if _, err := olap.NewEngine(store, []byte("secret")).Explain(t.Context(), request); !errors.As(err, &refused) {
		t.Errorf("a forged cursor: %v", err)
	}
}
