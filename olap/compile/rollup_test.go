package compile

import (
	"testing"
	"time"

	"github.com/runlens/runlens/olap/plan"
	"github.com/runlens/runlens/olap/query"
)

// The range has its first instant and not its end. What was first stored after asOf is left out; but what the rollup
// has of it is taken away, unless rows of the rollup that were first stored after asOf are left out themselves.
func TestRowsOfACachedDelta(t *testing.T) {
	q, err := query.Parse([]byte(`{"model":"agent_runs","metrics":["run_count"],
		"range":{"start":"2026-01-01","end":"2026-01-31","timezone":"UTC"}}`))
	if err != nil {
		t.Fatal(err)
	}
	start, end := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	asOf := end.Add(time.Hour)
	for _, c := range []struct {
		name             string
		clock, first     time.Time
		takesAway, later bool // later: the watermark is after asOf
		want             bool
	}{
		{name: "first instant", clock: start, first: asOf, want: true},
		{name: "before", clock: start.Add(-time.Millisecond), first: asOf},
		{name: "last instant", clock: end.Add(-time.Millisecond), first: asOf, want: true},
		{name: "end", clock: end, first: asOf},
		{name: "stored later", clock: start, first: asOf.Add(time.Millisecond)},
		{name: "stored later, taken away", clock: start, first: asOf.Add(time.Millisecond), takesAway: true, want: true},
		{name: "stored later, taken away before the range", clock: start.Add(-time.Millisecond),
			first: asOf.Add(time.Millisecond), takesAway: true},
		{name: "stored later, taken away where it was not added", clock: start,
			first: asOf.Add(time.Millisecond), takesAway: true, later: true},
		{name: "taken away", clock: start, first: asOf, takesAway: true, later: true, want: true},
	} {
		facts := plan.Facts{Records: 10_000_000, AsOf: asOf, Watermark: asOf, DeltaRead: true, DeltaRows: 1}
		if c.later {
			facts.Watermark = asOf.Add(time.Second)
		}
		in := Input{Plan: plan.Of(q).Plan(facts), Organization: "acme"}
		if got := in.DeltaRow(c.clock.UnixMilli(), c.first.UnixMilli(), c.takesAway); got != c.want {
			t.Errorf("%s: needed: %v, want %v", c.name, got, c.want)
		}
	}
}

// Spans are those that lie in the range as a whole. Weeks begin on Thursdays, at 00:00 UTC, as 1970-01-01 was one.
func TestSpansOfProjections(t *testing.T) {
	const runs = `"metrics":["run_count"]`
	const initiators = `"metrics":["unique_initiator_count"]`
	for _, c := range []struct {
		name, request, start, end, zone string
		from, until                     string // the spans' first instant and their end
	}{
		{"days of whole hours", runs + `,"dimensions":["day"]`, "2026-01-01", "2026-01-31", "Europe/Stockholm",
			"2025-12-31T23:00:00Z", "2026-01-31T23:00:00Z"},
		{"days of quarters", runs + `,"dimensions":["day","user_type"]`, "2026-01-01", "2026-01-01", "Asia/Kathmandu",
			"2025-12-31T18:15:00Z", "2026-01-01T18:15:00Z"},
		{"no days, which begin within hours", runs + `,"dimensions":["agent_id"]`, "2026-01-01", "2026-06-30",
			"Asia/Kathmandu", "2025-12-31T19:00:00Z", "2026-06-30T18:00:00Z"},
		{"whole weeks", initiators, "2026-01-01", "2026-01-28", "UTC", "2026-01-01T00:00:00Z", "2026-01-29T00:00:00Z"},
		{"many whole weeks", initiators, "2026-01-01", "2026-06-03", "UTC", "2026-01-01T00:00:00Z", "2026-06-04T00:00:00Z"},
		{"weeks and edges", initiators, "2025-12-31", "2026-06-04", "UTC", "2026-01-01T00:00:00Z", "2026-06-04T00:00:00Z"},
		{"begins a little late", initiators, "2026-01-01", "2026-06-03", "America/New_York",
			"2026-01-08T00:00:00Z", "2026-06-04T00:00:00Z"},
		{"ends a little early", initiators, "2026-01-01", "2026-06-03", "Asia/Tokyo",
			"2026-01-01T00:00:00Z", "2026-05-28T00:00:00Z"},
		{"weeks before 1970", initiators, "1969-12-25", "1969-12-31", "UTC", "1969-12-25T00:00:00Z", "1970-01-01T00:00:00Z"},
	} {
		q, err := query.Parse([]byte(`{"model":"agent_runs",` + c.request +
			`,"range":{"start":"` + c.start + `","end":"` + c.end + `","timezone":"` + c.zone + `"}}`))
		if err != nil {
			t.Fatal(c.name, err)
		}
		facts := plan.Facts{Records: 10_000_000, AsOf: time.UnixMilli(2), Watermark: time.UnixMilli(1)}
		w := printer{Input: Input{Plan: plan.Of(q).Plan(facts)}}
		first, after := w.spans(w.Projection.SpanMillis)
		at := func(n int64) string { return time.UnixMilli(n * w.Projection.SpanMillis).UTC().Format(time.RFC3339) }
		if at(first) != c.from || at(after) != c.until {
			t.Errorf("%s: from %s until %s, want from %s until %s", c.name, at(first), at(after), c.from, c.until)
		}
	}
}
