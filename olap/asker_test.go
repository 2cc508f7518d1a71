package olap_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/conform"
	"github.com/runlens/runlens/olap/plan"
	"github.com/runlens/runlens/olap/query"
	"github.com/runlens/runlens/schema"
)

// An asker asks one engine.
type asker struct {
	engine   *olap.Engine
	runner   conform.Runner
	strategy *olap.Strategy // of the last first page; nil after a refusal
}

func newAsker(conn driver.Conn, options plan.Options) *asker {
	a := &asker{engine: engineWith(conn, options)}
	a.engine.Margin(0)
	a.runner.Ask = a.ask
	return a
}

// checkUnder repeats a case's question until it is answered under a strategy, if the question fits the rollup: until
// the inserts are old enough to be counted, no delta is cached. Every answer must be the case's. A question that
// continues another one has a boundary of its own, and is asked once.
func (a *asker) checkUnder(t *testing.T, step conform.Step, want olap.Strategy) {
	for tries := 1; ; tries++ {
		a.check(t, step)
		if a.strategy == nil || t.Failed() || step.UsesCursor() {
			return
		}
		reads, _, _ := strings.Cut(a.strategy.Reads, "_")
		if !fitsRollup(t, step.Body) {
			want = olap.Strategy{Reads: "base"}
		}
		got := olap.Strategy{Reads: reads, Delta: a.strategy.Delta, Refreshing: a.strategy.Refreshing}
		if reflect.DeepEqual(got, want) {
			return
		}
		if tries == 100 {
			t.Fatalf("line %d: answered by %+v, want %+v", step.Line, a.strategy, want)
		}
	}
}

// check runs a case once.
func (a *asker) check(t *testing.T, step conform.Step) {
	t.Helper()
	a.strategy = nil
	differences, err := a.runner.Check(step)
	if err != nil {
		t.Fatalf("line %d: %v", step.Line, err)
	}
	for _, difference := range differences {
		t.Errorf("line %d: %s", step.Line, difference)
	}
}

func (a *asker) ask(organization, body string) (answer conform.Answer, err error) {
	err = query.CheckSyntax([]byte(body))
	var got response
	var by olap.Strategy
	if err == nil {
		got, by, err = answered(a.engine, schema.WholeOrganization(schema.OrganizationID(organization)), []byte(body))
	}
	var refused *query.Error
	switch {
	case errors.As(err, &refused):
		return conform.Answer{FailCode: string(refused.Code), FailParam: refused.Param}, nil
	case err != nil:
		return answer, err
	}
	if a.strategy == nil {
		a.strategy = &by
	}
	answer = conform.Answer{AsOf: got.AsOf, Start: got.Range.StartUtc, End: got.Range.EndUtc, Rows: got.Rows}
	for _, c := range got.Columns {
		answer.Columns = append(answer.Columns, conform.Column(c))
	}
	for _, w := range got.Warnings {
		answer.Warnings = append(answer.Warnings, conform.Warning(w))
	}
	if got.Cursor != nil {
		answer.Cursor = *got.Cursor
	}
	return answer, nil
}
