package compile

import (
	"testing"
	"time"

	"github.com/runlens/runlens/olap/query"
)

// The range has its first instant and not its end. What was first stored after asOf is left out; but what is refreshed of it is taken
// away where all that is refreshed is added up, which is so unless some of it may have been stored after asOf.
func TestGivenChangesThatAreAskedFor(t *testing.T) {
	q, err := query.Parse([]byte(`{"model":"agent_runs","metrics":["run_count"],"range":{"start":"2026-01-01","end":"2026-01-31","timezone":"UTC"}}`))
	if err != nil {
		t.Fatal(err)
	}
	start, end := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	asOf := end.Add(time.Hour)
	for _, c := range []struct {
		name              string
		clock, first      time.Time
		takesAway, behind bool
		want              bool
	}{
		{name: "first instant", clock: start, first: asOf, want: true},
		{name: "before", clock: start.Add(-time.Millisecond), first: asOf},
		{name: "last instant", clock: end.Add(-time.Millisecond), first: asOf, want: true},
		{name: "end", clock: end, first: asOf},
		{name: "stored later", clock: start, first: asOf.Add(time.Millisecond)},
		{name: "stored later, taken away", clock: start, first: asOf.Add(time.Millisecond), takesAway: true, want: true},
		{name: "stored later, taken away before the range", clock: start.Add(-time.Millisecond), first: asOf.Add(time.Millisecond), takesAway: true},
		{name: "stored later, taken away where it was not added", clock: start, first: asOf.Add(time.Millisecond), takesAway: true, behind: true},
		{name: "taken away", clock: start, first: asOf, takesAway: true, behind: true, want: true},
	} {
		in := Input{Organization: "acme", Query: q, AsOf: asOf, Watermark: asOf}
		if c.behind {
			in.Watermark = asOf.Add(time.Second)
		}
		if got := in.AsksFor(c.clock.UnixMilli(), c.first.UnixMilli(), c.takesAway); got != c.want {
			t.Errorf("%s: asked for: %v, want %v", c.name, got, c.want)
		}
	}
}

// The smallest projection with all keys is added up: where the range consists of its spans of time, or is long and has some of them; and where days are
// told apart, only if no day begins within a span. Weeks begin on Thursdays, at 00:00 UTC, as 1970-01-01 was one.
func TestProjectionsThatAreAddedUp(t *testing.T) {
	const runs, initiator_keys = `"model":"agent_runs","metrics":["run_count"]`, `"model":"agent_runs","metrics":["unique_initiator_count"]`
	for _, c := range []struct {
		name, asked, start, end, zone string
		want                          string
		wholeFrom, wholeUntil         string // the spans' first instant and their end
	}{
		{"days of whole hours", runs + `,"dimensions":["day"]`, "2026-01-01", "2026-01-31", "Europe/Stockholm", "by_quarter", "2025-12-31T23:00:00Z", "2026-01-31T23:00:00Z"},
		{"days of quarters", runs + `,"dimensions":["day","user_type"]`, "2026-01-01", "2026-01-01", "Asia/Kathmandu", "by_user_type", "2025-12-31T18:15:00Z", "2026-01-01T18:15:00Z"},
		{"days that begin within hours", runs + `,"dimensions":["day","agent_id"]`, "2026-01-01", "2026-06-30", "Asia/Kathmandu", "", "", ""},
		{"no days, which begin within hours", runs + `,"dimensions":["agent_id"]`, "2026-01-01", "2026-01-31", "Asia/Kathmandu", "", "", ""},
		{"long, no days, which begin within hours", runs + `,"dimensions":["agent_id"]`, "2026-01-01", "2026-06-30", "Asia/Kathmandu", "by_agent", "2025-12-31T19:00:00Z", "2026-06-30T18:00:00Z"},
		{"whole weeks", initiator_keys, "2026-01-01", "2026-01-28", "UTC", "by_initiator_key", "2026-01-01T00:00:00Z", "2026-01-29T00:00:00Z"},
		{"many whole weeks", initiator_keys, "2026-01-01", "2026-06-03", "UTC", "by_initiator_key", "2026-01-01T00:00:00Z", "2026-06-04T00:00:00Z"},
		{"a few weeks and what lies beside them", initiator_keys, "2025-12-31", "2026-01-29", "UTC", "", "", ""},
		{"weeks and what lies beside them", initiator_keys, "2025-12-31", "2026-06-04", "UTC", "by_initiator_key", "2026-01-01T00:00:00Z", "2026-06-04T00:00:00Z"},
		{"a range that begins a little late", initiator_keys, "2026-01-01", "2026-06-03", "America/New_York", "by_initiator_key", "2026-01-08T00:00:00Z", "2026-06-04T00:00:00Z"},
		{"a range that ends a little early", initiator_keys, "2026-01-01", "2026-06-03", "Asia/Tokyo", "by_initiator_key", "2026-01-01T00:00:00Z", "2026-05-28T00:00:00Z"},
		{"days of whole weeks", initiator_keys + `,"dimensions":["day"]`, "2026-01-01", "2026-01-28", "UTC", "", "", ""},
		{"a day of whole weeks", initiator_keys + `,"filters":[{"member":"day","op":"eq","value":"2026-01-02"}]`, "2026-01-01", "2026-01-28", "UTC", "", "", ""},
		{"weeks before 1970", initiator_keys, "1969-12-25", "1969-12-31", "UTC", "by_initiator_key", "1969-12-25T00:00:00Z", "1970-01-01T00:00:00Z"},
	} {
		q, err := query.Parse([]byte("{" + c.asked + `,"range":{"start":"` + c.start + `","end":"` + c.end + `","timezone":"` + c.zone + `"}}`))
		if err != nil {
			t.Fatal(c.name, err)
		}
		p := plan(Input{Organization: "acme", Query: q, AsOf: time.Now(), Watermark: time.UnixMilli(1)})
		if p.projection == nil || c.want == "" {
			if p.projection != nil || c.want != "" {
				t.Errorf("%s: %+v, want %q", c.name, p.projection, c.want)
			}
			continue
		}
		first, behind := p.spans(p.projection.SpanMillis)
		from, until := time.UnixMilli(first*p.projection.SpanMillis).UTC().Format(time.RFC3339), time.UnixMilli(behind*p.projection.SpanMillis).UTC().Format(time.RFC3339)
		if p.projection.Name != c.want || from != c.wholeFrom || until != c.wholeUntil {
			t.Errorf("%s: %s from %s until %s, want %s from %s until %s", c.name, p.projection.Name, from, until, c.want, c.wholeFrom, c.wholeUntil)
		}
	}
}
