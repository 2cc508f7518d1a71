package usage_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/runlens/runlens/olap/cost"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/query"
	"github.com/runlens/runlens/olap/usage"
)

var quiet = slog.New(slog.DiscardHandler)

// ended runs a log until it has written what was recorded.
func ended(l *usage.Log) {
	ctx, end := context.WithCancel(context.Background())
	end()
	l.Run(ctx)
}

// lostOf is the value of a log's only metric.
func lostOf(t *testing.T, l *usage.Log) float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(l)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return families[0].GetMetric()[0].GetCounter().GetValue()
}

func number(t *testing.T, conn driver.Conn, sql string) (n uint64) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), "SELECT toUInt64("+sql+") FROM usage_log").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// The shape of a question has its members, never a value of a filter.
func TestShape(t *testing.T) {
	q, err := query.Parse([]byte(`{"model":"agent_runs","metrics":["run_count","run_success_rate"],
		"dimensions":["day","user_identifier"],"limit":7,
		"filters":[{"member":"user_identifier","op":"in","values":["ada@example.com","+15550100004"]},
			{"member":"user_type","op":"eq","value":"internal"}],
		"range":{"start":"2026-01-30","end":"2026-03-01","timezone":"Europe/Stockholm"}}`))
	if err != nil {
		t.Fatal(err)
	}
	got := usage.ShapeOf(q)
	if got.Model != "agent_runs" || strings.Join(got.Metrics, " ") != "run_count run_success_rate" ||
		strings.Join(got.Dimensions, " ") != "day user_identifier" ||
		strings.Join(got.Filters, ", ") != "user_identifier in, user_type eq" ||
		got.Days != 2+28+1 || got.Timezone != "Europe/Stockholm" || got.Limit != 7 {
		t.Errorf("%+v", got)
	}
}

// What was recorded is summed up by each grouping; figures worked out by hand.
func TestSummaries(t *testing.T) {
	conn := olaptest.OpenStore(t).Conn()
	now := time.Now()
	micros, runs := 1500*time.Microsecond, usage.Shape{Model: "agent_runs", Metrics: []string{"run_count"}, Days: 30,
		Timezone: "UTC", Limit: 100}
	people := runs
	people.Dimensions, people.Filters = []string{"user_identifier", "day"}, []string{"agent_id eq"}
	l := usage.NewLog(conn, quiet)
	for _, e := range []usage.Entry{
		{KeyID: "a", Shape: runs, Took: 10 * time.Millisecond, Cost: cost.Cost{Rows: 100, Bytes: 800, Processor: &micros}},
		{KeyID: "a", Shape: runs, Took: 20 * time.Millisecond, Cost: cost.Cost{Rows: 50, Bytes: 400, Processor: &micros}},
		{KeyID: "b", Shape: people, Took: 300 * time.Millisecond, Cost: cost.Cost{Rows: 7, Bytes: 56}},
		{KeyID: "b", Shape: people, Code: "rate_limited", LimitHit: "concurrency", Took: time.Millisecond},
		{KeyID: "b", Code: "rate_limited", LimitHit: "rate"},
		{KeyID: "b", Code: "rate_limited", LimitHit: "rate"},
		{KeyID: "b", Code: "invalid_query"},
		{OrganizationID: "globex", KeyID: "c", Shape: runs, Took: 5 * time.Millisecond},
		{OrganizationID: "globex", KeyID: "c", Shape: runs, At: now.Add(-48 * time.Hour)},
	} {
		if e.OrganizationID == "" {
			e.OrganizationID = "acme"
		}
		if e.At.IsZero() {
			e.At = now
		}
		l.Record(e)
	}
	ended(l)
	if rows := number(t, conn, "count()"); rows != 8 { // equal refusals without a shape are one
		t.Errorf("%d rows", rows)
	}
	f := func(v float64) *float64 { return &v }
	for _, c := range []struct {
		of   usage.Selection
		want []usage.Summary
	}{
		{usage.Selection{By: usage.ByOrganization}, []usage.Summary{
			{[]string{"acme"}, 7, 4, 3, 157, 1256, f(3), f(110), f(300), f(300)},
			{[]string{"globex"}, 1, 0, 0, 0, 0, nil, f(5), f(5), f(5)},
		}},
		{usage.Selection{By: usage.ByKey, OrganizationID: "acme"}, []usage.Summary{
			{[]string{"acme", "b"}, 5, 4, 3, 7, 56, nil, f(300), f(300), f(300)},
			{[]string{"acme", "a"}, 2, 0, 0, 150, 1200, f(3), f(15), f(20), f(20)},
		}},
		{usage.Selection{By: usage.ByKey, KeyID: "a"}, []usage.Summary{
			{[]string{"acme", "a"}, 2, 0, 0, 150, 1200, f(3), f(15), f(20), f(20)},
		}},
		{usage.Selection{By: usage.ByShape}, []usage.Summary{
			{[]string{"agent_runs", "run_count", "", "", "30", "UTC", "100"},
				3, 0, 0, 150, 1200, f(3), f(35. / 3), f(20), f(20)},
			{[]string{"agent_runs", "run_count", "user_identifier,day", "agent_id eq", "30", "UTC", "100"},
				2, 1, 1, 7, 56, nil, f(300), f(300), f(300)},
		}},
		{usage.Selection{By: usage.ByShape, Slowest: true, Limit: 1}, []usage.Summary{
			{[]string{"agent_runs", "run_count", "user_identifier,day", "agent_id eq", "30", "UTC", "100"},
				2, 1, 1, 7, 56, nil, f(300), f(300), f(300)},
		}},
		{usage.Selection{By: usage.ByQuestion}, []usage.Summary{
			{[]string{"acme", "agent_runs", "run_count", "", "", "30", "UTC", "100"},
				2, 0, 0, 150, 1200, f(3), f(15), f(20), f(20)},
			{[]string{"acme", "agent_runs", "run_count", "user_identifier,day", "agent_id eq", "30", "UTC", "100"},
				2, 1, 1, 7, 56, nil, f(300), f(300), f(300)},
			{[]string{"globex", "agent_runs", "run_count", "", "", "30", "UTC", "100"},
				1, 0, 0, 0, 0, nil, f(5), f(5), f(5)},
		}},
		{usage.Selection{By: usage.ByRefusal}, []usage.Summary{
			{[]string{"acme", "rate_limited", "rate"}, 2, 2, 2, 0, 0, nil, nil, nil, nil},
			{[]string{"acme", "invalid_query", ""}, 1, 1, 0, 0, 0, nil, nil, nil, nil},
			{[]string{"acme", "rate_limited", "concurrency"}, 1, 1, 1, 0, 0, nil, nil, nil, nil},
		}},
	} {
		c.of.Since = now.Add(-24 * time.Hour)
		if c.of.Limit == 0 {
			c.of.Limit = 10
		}
		got, err := usage.Summarize(t.Context(), c.of, conn)
		if err != nil || !equal(got, c.want) {
			t.Errorf("%+v: got %s, %v, want %s", c.of, shown(got), err, shown(c.want))
		}
	}
}

// Memory is bounded: what is too much is lost and counted, as are all entries of a store that is gone. Recording never
// waits.
func TestLosses(t *testing.T) {
	store := olaptest.OpenStore(t)
	l := usage.NewLog(store.Conn(), quiet)
	shape := usage.Shape{Model: "agent_runs"}
	for range 10_003 {
		l.Record(usage.Entry{At: time.Now(), OrganizationID: "acme", Shape: shape})
	}
	for range 5 { // of which the first is lost, too
		l.Record(usage.Entry{At: time.Now(), OrganizationID: "acme", Code: "rate_limited", LimitHit: "rate"})
	}
	if lost := lostOf(t, l); lost != 8 {
		t.Errorf("%v are lost, want 8", lost)
	}
	ended(l)
	if kept := number(t, store.Conn(), "count()"); kept != 10_000 {
		t.Errorf("%d rows, want 10000", kept)
	}

	gone := usage.NewLog(unreachable{store.Conn()}, quiet)
	gone.Record(usage.Entry{At: time.Now(), OrganizationID: "acme", Shape: shape})
	for range 2 {
		gone.Record(usage.Entry{At: time.Now(), OrganizationID: "acme", Code: "rate_limited"})
	}
	ended(gone)
	if lost := lostOf(t, gone); lost != 3 {
		t.Errorf("without a store %v are lost, want 3", lost)
	}
}

// unreachable is a store whose inserts wait until their time is over.
type unreachable struct{ driver.Conn }

func (unreachable) PrepareBatch(ctx context.Context, _ string, _ ...driver.PrepareBatchOption) (driver.Batch, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// What the store did not take is written when it is back, while further questions come.
func TestOutage(t *testing.T) {
	store := olaptest.OpenStore(t)
	conn := &outage{Conn: store.Conn(), inserts: 2, ended: make(chan struct{})}
	l := usage.NewLog(conn, quiet)
	l.WriteEvery(time.Millisecond)
	conn.during = func() {
		l.Record(usage.Entry{At: time.Now(), OrganizationID: "acme", Shape: usage.Shape{Model: "m"}})
	}
	conn.during()
	ctx, end := context.WithCancel(t.Context())
	written := make(chan struct{})
	go func() {
		defer close(written)
		l.Run(ctx)
	}()
	<-conn.ended
	end()
	<-written
	if n, lost := number(t, store.Conn(), "count()"), lostOf(t, l); n != 3 || lost != 0 {
		t.Errorf("%d rows, want one from before the outage and one for each of its two inserts; %v are lost", n, lost)
	}
}

// An outage refuses a number of inserts, and is ended then.
type outage struct {
	driver.Conn
	inserts int
	during  func() // called at each refusal
	ended   chan struct{}
}

func (o *outage) PrepareBatch(
	ctx context.Context, sql string, options ...driver.PrepareBatchOption,
) (driver.Batch, error) {
	switch o.inserts--; {
	case o.inserts >= 0:
		o.during()
		return nil, errors.New("refused")
	case o.inserts == -1:
		close(o.ended)
	}
	return o.Conn.PrepareBatch(ctx, sql, options...)
}

// Rows older than 90 days go with the part of their week, all at once.
func TestOldRowsAreDropped(t *testing.T) {
	conn := olaptest.OpenStore(t).Conn()
	l := usage.NewLog(conn, quiet)
	for _, days := range []int{0, 80, 100, 100} {
		l.Record(usage.Entry{At: time.Now().AddDate(0, 0, -days), OrganizationID: "acme", Shape: usage.Shape{Model: "m"}})
	}
	ended(l)
	if err := conn.Exec(t.Context(), "OPTIMIZE TABLE usage_log FINAL"); err != nil {
		t.Fatal(err)
	}
	if n := number(t, conn, "countIf(at < now() - INTERVAL 90 DAY)"); n != 0 {
		t.Errorf("%d rows are left of 100 days ago", n)
	}
	if n := number(t, conn, "count()"); n != 2 {
		t.Errorf("%d rows are left, want those of today and of 80 days ago", n)
	}
}

func equal(got, want []usage.Summary) bool { return shown(got) == shown(want) }

func shown(summaries []usage.Summary) string {
	text, err := json.Marshal(summaries)
	if err != nil {
		panic(err)
	}
	return string(text)
}
