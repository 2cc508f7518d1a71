package console

import (
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/http/client"
	"github.com/runlens/runlens/http/client/report"
	"github.com/runlens/runlens/olap/cache"
)

// An address holds the whole look: what is read from it is written as it was.
func TestLooksAreTheirAddresses(t *testing.T) {
	c := &Console{}
	for _, query := range []string{
		"dimensions=day&last=30d&metrics=run_count&model=agent_runs",
		"chart=bar&compare=year&dimensions=agent_id&dimensions=day&end=2026-01-31&fill=true&filter=user_type%3Dinternal%2C" +
			"external&filter=user_identifier%3D%22a%2Cb%22&limit=7&metrics=run_count&metrics=run_success_rate&model=agent_runs" +
			"&sort=day%3Adesc&start=2026-01-01&timezone=Europe%2FStockholm&top=20&weekdays=true&wider=last%3D30d",
		"grain=week&last=12w&metrics=unique_initiator_count&model=agent_runs&week-start=sunday",
		"metrics=interaction_count&model=agent_user_activity&order=source%3Adesc&dimensions=source&today=true",
	} {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		l, err := c.parseLook(values)
		if err != nil || !reflect.DeepEqual(l.values(), values) {
			t.Errorf("%s\nis written as\n%s (%v)", query, l.values().Encode(), err)
		}
	}
}

// A form that changes something else than the days keeps the way back to those that were narrowed.
func TestFormsKeepWhatWasNarrowed(t *testing.T) {
	for query, want := range map[string][]string{
		"over=day&period=days&start=2026-01-02&end=2026-01-05": {"last=30d", "end=2026-01-09&start=2026-01-01"},
		"over=day&period=days&start=2026-01-02&end=2026-01-06": nil,
		"over=day&period=last%3D30d":                           nil,
	} {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		values["periods"] = []string{"last=30d", "end=2026-01-09&start=2026-01-01", "end=2026-01-05&start=2026-01-02"}
		l, err := (&Console{}).parseLook(values)
		if err != nil || !slices.Equal(l.Wider, want) {
			t.Errorf("%s: back to %q (%v), want %q", query, l.Wider, err, want)
		}
	}
}

// dayOf is the midnight in UTC at which a day begins.
func dayOf(t *testing.T, text string) time.Time {
	t.Helper()
	day, err := time.Parse(time.DateOnly, text)
	if err != nil {
		t.Fatal(err)
	}
	return day
}

// Days that are shorter or longer are named, and one that the zone skipped.
func TestClockChanges(t *testing.T) {
	for _, c := range []struct {
		zone, start, end string
		want             []string
	}{
		{"Europe/Stockholm", "2026-03-01", "2026-03-28", nil},
		{"Europe/Stockholm", "2026-03-28", "2026-10-26", []string{
			"2026-03-29 has 23 hours in Europe/Stockholm: its clocks change.",
			"2026-10-25 has 25 hours in Europe/Stockholm: its clocks change."}},
		{"Pacific/Apia", "2011-12-29", "2011-12-31", []string{"2011-12-30 was skipped in Pacific/Apia: it has no hours."}},
		{"Australia/Lord_Howe", "2026-04-05", "2026-04-05", []string{
			"2026-04-05 has 24.5 hours in Australia/Lord_Howe: its clocks change."}},
	} {
		span := report.Span{Start: dayOf(t, c.start), End: dayOf(t, c.end)}
		if got := clockChanges(span, c.zone); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q", c.zone, got)
		}
	}
}

// A segment is dashed where a period at one of its ends is not over; a missing value is a gap, never a zero.
func TestLinesHaveGaps(t *testing.T) {
	value := func(f float64) *float64 { return &f }
	values := []*float64{value(10), value(20), nil, value(5), nil, value(10), value(0)}
	d := drawLines(chart{Kind: "line", Metric: "run_count", Days: make([]int64, 7), Firsts: make([]string, 7),
		Open: []int{6}, Series: []series{{Values: values}}})
	// From 58 to 630 in steps of 95.33; 20 is at the top (10), 0 at the bottom (195).
	want := []svgLine{{"58.0,102.5 153.3,10.0", "s1", false}, {"534.7,102.5 630.0,195.0", "s1", true}}
	if !slices.Equal(d.Lines, want) || len(d.Dots) != 1 || d.Dots[0] != (svgDot{344, 148.75, "s1"}) {
		t.Errorf("%v, %v", d.Lines, d.Dots)
	}
}

// Groups that share a name are told apart.
func TestNamesAreDistinct(t *testing.T) {
	a := &answer{columns: []report.Column{
		{Name: "agent_id", Member: "agent_id"}, {Name: "agent_name", Member: "agent_id"},
	}}
	for _, ids := range [][2]string{{"11111111-aaaa", "Desk"}, {"22222222-bbbb", "Desk"}, {"33333333-cccc", "Scout"},
		{"+15550100004", "Bo"}, {"+15550100005", "Bo"}, {"44444444-dddd", ""}, {"55555555-eeee", " \u200b"}} {
		a.rows = append(a.rows, report.Row{text(ids[0]), text(ids[1])})
	}
	var got []string
	for _, name := range groupNames(a) {
		got = append(got, name)
	}
	slices.Sort(got)
	want := []string{"44444444-dddd", "55555555-eeee", "Bo (+15550100004)", "Bo (+15550100005)", "Desk (1111…)",
		"Desk (2222…)", "Scout"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	c := &Console{names: cache.New[string](keptNames, keptFor)}
	c.learn(a)
	if got := c.name("agent_id", "44444444-dddd"); got != "44444444-dddd" {
		t.Errorf("in a sentence it is %q", got)
	}
}

// In a sentence a name is short, and turns nothing behind it.
func TestNamesInSentences(t *testing.T) {
	c := &Console{names: cache.New[string](keptNames, keptFor)}
	for value, want := range map[string]string{
		"desk":                   "desk",
		"a\u202etxt.exe":         "\u2068a\u202etxt.exe\u2069",
		strings.Repeat("x", 500): strings.Repeat("x", 59) + "…",
	} {
		if got := c.name("agent_id", value); got != want {
			t.Errorf("%q is %q, want %q", value, got, want)
		}
	}
}

func text(s string) client.Value { return client.StringValue(s) }
