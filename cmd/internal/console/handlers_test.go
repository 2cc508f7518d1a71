package console

import (
	"slices"
	"testing"

	"github.com/runlens/runlens/http/client"
	"github.com/runlens/runlens/http/client/report"
	"github.com/runlens/runlens/olap/cache"
)

// A name that is typed as a filter stands for all who share it, and not for the one that was seen last.
func TestNamesThatAreShared(t *testing.T) {
	c := &Console{names: cache.New[string](keptNames, keptFor)}
	a := &answer{columns: []report.Column{{Name: "user_identifier", Member: "user_identifier"},
		{Name: "user_name", Member: "user_identifier"}}}
	for _, row := range [][2]string{{"a@x.example", "Jo Li"}, {"b, c", "jo li"}, {"d@x.example", "Max"},
		{"cron-7", ""}, {"auth0|1", "ada@x.example"}, {"eve@x.example", "bob@x.example"},
		{"mal@x.example", "cron-7"}, {"+15550100", "+1 555 0199"}} {
		a.rows = append(a.rows, report.Row{client.StringValue(row[0]), client.StringValue(row[1])})
	}
	c.learn(a)
	c.learn(a) // again: nobody is there twice
	for typed, want := range map[string][]string{
		"Jo Li": {"a@x.example", "b, c"}, "max": {"d@x.example"}, "eve": {"eve"},
		// Whoever has somebody's identifier as a name is not that person.
		"ada@x.example": {"auth0|1"}, "bob@x.example": {"bob@x.example"}, "cron-7": {"cron-7"}, "+1 555 0199": {"+15550100"},
	} {
		if got := c.identifiers("user_identifier", typed); !slices.Equal(got, want) {
			t.Errorf("%s stands for %q, want %q", typed, got, want)
		}
	}
	l := look{Question: report.Question{Filter: []string{"user_identifier=a@x.example"}}}
	l.addFilter("user_identifier", c.identifiers("user_identifier", "Jo Li")...)
	if want := `user_identifier=a@x.example,"b, c"`; len(l.Filter) != 1 || l.Filter[0] != want {
		t.Errorf("the filter is %q, want %s", l.Filter, want)
	}
}
