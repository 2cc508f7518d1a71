package compile

import (
	"testing"
	"time"

	"github.com/runlens/runlens/olap/query"
)

// The range has its first instant and not its end. What was first stored after asOf is left out; but what is settled of it is taken
// away where all that is settled is added up, which is so unless some of it may have been stored after asOf.
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
		in := Input{Organization: "acme", Query: q, AsOf: asOf, SettledUntil: asOf}
		if c.behind {
			in.SettledUntil = asOf.Add(time.Second)
		}
		if got := in.AsksFor(c.clock.UnixMilli(), c.first.UnixMilli(), c.takesAway); got != c.want {
			t.Errorf("%s: asked for: %v, want %v", c.name, got, c.want)
		}
	}
}
