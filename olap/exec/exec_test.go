package exec_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/runlens/runlens/olap/compile"
	"github.com/runlens/runlens/olap/exec"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/olap/value"
)

// The end of the context stops the query in ClickHouse itself, not only the waiting for it.
func TestTheDeadlineStopsTheQuery(t *testing.T) {
	store := olaptest.OpenStore(t)
	queryID := uuid.New()
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	slow := compile.Statement{
		SQL:     "SELECT count() AS c0 FROM numbers(1000) WHERE sleepEachRow(1) = 0 SETTINGS max_block_size = 1",
		Columns: []compile.Column{{Name: "c0", Kind: value.Count}},
	}
	if _, err := exec.Run(ctx, store.Conn(), slow, queryID, ""); err == nil {
		t.Error("the query ended before its deadline")
	}
	bound, stop := context.WithTimeout(context.Background(), 30*time.Second)
	defer stop()
	for running := uint64(1); running > 0; {
		if err := store.Conn().QueryRow(bound, "SELECT count() FROM system.processes WHERE query_id = $1",
			queryID.String()).Scan(&running); err != nil {
			t.Fatalf("the query still runs in ClickHouse: %v", err)
		}
	}
}

// What reaches a log names ClickHouse's code, not the statement, which has people's identifiers. Nor does a failure of
// the network name the address it was sent to, which has the parameters.
func TestFailuresDoNotQuoteTheStatement(t *testing.T) {
	store := olaptest.OpenStore(t)
	for name, sql := range map[string]string{
		"while it is read": "SELECT nonsense({person:String}) AS c0",
		"while it runs":    "SELECT toUInt64(throwIf(length({person:String}) > 0)) AS c0",
		"a forbidden one":  "INSERT INTO runs (organization_id) VALUES ({person:String})",
		"a late one":       "SELECT toUInt64(sleep(3)) + length({person:String}) AS c0",
	} {
		ctx, cancel := t.Context(), func() {}
		if name == "a late one" {
			ctx, cancel = context.WithTimeout(ctx, 200*time.Millisecond)
		}
		statement := compile.Statement{
			SQL: sql, Params: []compile.Param{{Name: "person", Value: "ada@example.com"}},
			Columns: []compile.Column{{Name: "c0", Kind: value.Count}},
		}
		_, err := exec.Run(ctx, store.Conn(), statement, uuid.New(), "")
		cancel()
		if err == nil {
			t.Fatalf("%s: no error", name)
		}
		if text := err.Error(); strings.Contains(text, "ada") || strings.Contains(text, "SELECT") ||
			name != "a late one" && !strings.Contains(text, "ClickHouse exception") {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// The names by which an execution is found in ClickHouse's log and list of processes.
func TestQueryIDAndCommentReachClickHouse(t *testing.T) {
	store := olaptest.OpenStore(t)
	queryID := uuid.New()
	statement := compile.Statement{
		SQL:     "SELECT query_id AS c0, Settings['log_comment'] AS c1 FROM system.processes WHERE query_id = {id:String}",
		Params:  []compile.Param{{Name: "id", Value: queryID.String()}},
		Columns: []compile.Column{{Name: "c0", Kind: value.Text}, {Name: "c1", Kind: value.Text}},
	}
	statement.SQL = "SELECT CAST(c0, 'Nullable(String)'), CAST(c1, 'Nullable(String)') FROM (" + statement.SQL + ")"
	table, err := exec.Run(context.Background(), store.Conn(), statement, queryID, "request 7")
	if err != nil {
		t.Fatal(err)
	}
	if len(table.Rows) != 1 || table.Rows[0][0].Text != queryID.String() ||
		table.Rows[0][1].Text != "request 7" {
		t.Errorf("got %v, want the query's own id and comment", table.Rows)
	}
}

func TestNewest(t *testing.T) {
	ctx := context.Background()
	store := olaptest.OpenStore(t)
	run, attribution, err := snapshot.Newest(ctx, store.Conn())
	if err != nil || !run.IsZero() || !attribution.IsZero() {
		t.Errorf("an empty store has %v and %v, %v", run, attribution, err)
	}
	at := time.Date(2026, 1, 5, 10, 0, 0, 123e6, time.UTC)
	var records olaptest.Records
	for i, clock := range []time.Time{at, at.Add(-time.Hour), at.Add(-40 * 24 * time.Hour)} {
		records.Runs = append(records.Runs, olaptest.Run{Organization: "acme", ID: olaptest.ShortID(i), CreatedAt: clock,
			Kind: "agent", Status: "FAILED"})
	}
	olaptest.Load(t, store.Conn(), records)
	if run, attribution, err = snapshot.Newest(ctx, store.Conn()); err != nil || !run.Equal(at) || !attribution.IsZero() {
		t.Errorf("got %v and %v, %v, want %v and none", run, attribution, err, at)
	}
}
