package console

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/runlens/runlens/cmd/internal/output"
	"github.com/runlens/runlens/http/client"
	"github.com/runlens/runlens/http/client/report"
)

const (
	// leadersShown groups of a dimension are seen at once, and leadersKept are in the page, for the search.
	leadersShown = 8
	leadersKept  = 100
)

// A leadersView is a list of the groups of one dimension by one metric.
type leadersView struct {
	Dimension, Metric string
	Rows              []leaderRow
	Total             leaderRow
	Compared          bool
	Hidden            int // rows that a press of a button shows
	Left              int // rows that are not in the page
	Note              string
	Highest, Lowest   link
	MostChanged       link
	Draw              link // the look that draws them over time, or no longer
}

type leaderRow struct {
	Name, ID, Value string
	Href            string // the look at it alone; empty where no filter can choose it
	Change          change
	Width           string // of the bar, in percent
	Hidden          bool

	value float64 // −1 for none
}

// listed reports whether a row says something: a count of 0 that was 0 does not, but a rate of 0 does.
func (r leaderRow) listed(kind report.Kind) bool {
	return r.value > 0 || r.value == 0 && kind != report.Count || r.Change.by > 0
}

func (c *Console) leadersViews(s *shown) (all []leadersView) {
	for _, board := range s.leaders {
		all = append(all, c.leadersView(s, board))
	}
	return all
}

func (c *Console) leadersView(s *shown, board *leaders) leadersView {
	metric := s.look.Metrics[0]
	v := leadersView{Dimension: board.dimension, Metric: metric, Compared: s.look.Compare != ""}
	for _, sort := range []struct {
		by   string
		link *link
	}{{"value", &v.Highest}, {"lowest", &v.Lowest}, {"change", &v.MostChanged}} {
		to := s.look
		to.By = sort.by
		*sort.link = link{Href: to.address(), Here: s.look.By == sort.by}
	}
	v.Draw = s.look.drawn(board.dimension)
	a := board.answer
	at := slices.IndexFunc(a.columns, func(c report.Column) bool { return c.Name == metric })
	if at < 0 || len(s.totals.rows) == 0 {
		return v
	}
	names := groupNames(a)
	for _, row := range a.rows {
		r := leaderRow{Name: names[output.GroupOf(a.columns, row)], Value: shownValue(a.columns[at], row[at]),
			Change: changeOf(a.columns, row, at), Href: s.look.onlyGroup(a.columns, row), value: -1}
		if f := number(row[at]); f != nil {
			r.value = *f
		}
		if id := shownText(row[0]); id != r.Name || len(id) > longText/2 {
			r.ID = id
		}
		if r.listed(a.columns[at].Kind) {
			v.Rows = append(v.Rows, r)
		}
	}
	v.arrange(s.look.By)
	if board.ranked != "" {
		v.Note = fmt.Sprintf("The %d with the %s.", client.MaxLimit, most(board.ranked, s.look.By == "lowest"))
	}
	if at := slices.IndexFunc(s.totals.columns, func(c report.Column) bool { return c.Name == metric }); at >= 0 {
		row := s.totals.rows[0]
		v.Total = leaderRow{Name: "All", Value: shownValue(s.totals.columns[at], row[at]),
			Change: changeOf(s.totals.columns, row, at)}
	}
	return v
}

// arrange sorts the rows as look.By says, and hides those behind the first ones. Without a comparison nothing changed.
func (v *leadersView) arrange(by string) {
	slices.SortStableFunc(v.Rows, func(a, b leaderRow) int {
		order := cmp.Compare(b.value, a.value)
		switch {
		case by == "lowest" && a.value >= 0 && b.value >= 0: // rows without a value stay last
			order = -order
		case by == "change":
			order = cmp.Or(cmp.Compare(b.Change.by, a.Change.by), order)
		}
		return cmp.Or(order, strings.Compare(a.Name, b.Name))
	})
	most := 0.0
	for _, r := range v.Rows {
		most = max(most, r.value)
	}
	v.Left = max(len(v.Rows)-leadersKept, 0)
	v.Rows = v.Rows[:len(v.Rows)-v.Left]
	v.Hidden = max(len(v.Rows)-leadersShown, 0)
	for i := range v.Rows {
		v.Rows[i].Hidden = i >= leadersShown
		if most > 0 {
			v.Rows[i].Width = fmt.Sprintf("%.1f%%", max(v.Rows[i].value, 0)/most*100)
		}
	}
}

// drawn leads to the look that draws the groups of a dimension over time, and back from there.
func (l look) drawn(dimension string) link {
	to := l
	to.Sort = ""
	if slices.Contains(l.groups(), dimension) {
		to.Dimensions = slices.DeleteFunc(slices.Clone(l.Dimensions), func(d string) bool { return d == dimension })
		return link{Href: to.address(), Here: true}
	}
	to.Dimensions = []string{dimension}
	if l.over() == "day" || l.over() == "" {
		to.Dimensions, to.Grain = append(to.Dimensions, "day"), ""
	}
	return link{Href: to.address()}
}
