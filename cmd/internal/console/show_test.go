package console

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/http/client"
	"github.com/runlens/runlens/http/client/report"
)

// What no filter can choose is asked for without one, for an answer of some rows is better than a refusal.
func TestGroupsAreKeptAsFarAsFiltersCan(t *testing.T) {
	text := func(value string) client.Value { return client.StringValue(value) }
	columns := []report.Column{{Name: "source", Kind: report.Text, Member: "source"},
		{Name: "user_identifier", Kind: report.Text, Member: "user_identifier"},
		{Name: "run_count", Kind: report.Count, Member: "run_count"}}
	longest := strings.Repeat("é", client.MaxFilterLength)
	seven := slices.Repeat([]string{"user_type=internal"}, client.MaxFilters-1)
	const unchosen = "What has no person is not drawn: no filter can choose it."
	for name, c := range map[string]struct {
		before     []string
		first, one client.Value // the identifiers of the two groups that are kept
		want       []string
		noted      bool
	}{
		"values":         {nil, text("a"), text("b"), []string{"source=web", "user_identifier=a,b"}, false},
		"a long value":   {nil, text("a"), text(longest), []string{"source=web", "user_identifier=a," + longest}, false},
		"too long":       {nil, text("a"), text(longest + "x"), []string{"source=web"}, false},
		"an empty one":   {nil, text(""), text("b"), []string{"source=web"}, false},
		"null":           {nil, text("a"), client.Value{}, []string{"source=web", "user_identifier=a"}, true},
		"too long, null": {nil, text(longest + "x"), client.Value{}, []string{"source=web"}, false},
		"eight filters":  {seven, text("a"), text("b"), append(slices.Clone(seven), "source=web"), false},
	} {
		d := drawing{question: report.Question{Filter: c.before}}
		d.keep(&answer{question: report.Question{Metrics: []string{"run_count"}}, columns: columns, rows: []report.Row{
			{text("web"), c.first, client.Int64Value(3)}, {text("web"), c.one, client.Int64Value(2)},
			{text("api"), text("c"), client.Int64Value(1)},
		}}, 2)
		if noted := slices.Contains(d.notes, unchosen); !slices.Equal(d.question.Filter, c.want) || noted != c.noted {
			t.Errorf("%s: %q, %q", name, d.question.Filter, d.notes)
		}
	}
}

// What a page says of its time is true of its lists and small lines too, which may be from memory.
func TestAsOfIsThatOfAllAnswers(t *testing.T) {
	at := func(second int) *answer {
		asOf := time.Date(2026, 1, 15, 15, 0, second, 0, time.UTC)
		return &answer{facts: report.Facts{AsOf: asOf, AsOfLast: asOf}}
	}
	s := &shown{totals: at(40), rows: at(40), days: at(12), leaders: []*leaders{{answer: at(41)}}}
	if got, want := s.asOf(), "15 Jan 2026, 15:00:12 UTC to 15:00:41 UTC"; got != want {
		t.Errorf("as of %s, want %s", got, want)
	}
}
