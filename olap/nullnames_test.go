package olap_test

import (
	"reflect"
	"testing"

	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/rollup"
)

// Two names that share a key are noticed where the person also has runs without a name: in the delta and refreshed.
func TestNamesThatShareAKeyBesideNone(t *testing.T) {
	t.Parallel()
	conn := olaptest.OpenStore(t).Conn()
	refresher := rollup.New(conn, quiet, 0)
	refreshed(t, refresher)
	engine := olap.NewEngine(conn, []byte("secret"))
	engine.Use(inlineDelta)
	identifier := "bob@example.org"
	names := []*string{&olaptest.SharingNames[0], &olaptest.SharingNames[1], nil}
	var records olaptest.Records
	want := [][]any{}
	for n, name := range names {
		run := runOn(n, 1+n, "RUNNING")
		run.Identifier, run.Name = &identifier, name
		records.Runs = append(records.Runs, run)
		row := []any{run.CreatedAt.Format("2006-01-02"), identifier, nil, 1.0}
		if name != nil {
			row[2] = *name
		}
		want = append(want, row)
	}
	olaptest.Load(t, conn, records)
	people := olaptest.Query{Model: "agent_runs", Metrics: []string{"run_count"},
		Dimensions: []string{"day", "user_identifier"}, Range: january, Limit: 10}
	for _, when := range []string{"in the delta", "refreshed"} {
		if got := ask(t, engine, "acme", people).Rows; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
		refreshed(t, refresher)
	}
}
