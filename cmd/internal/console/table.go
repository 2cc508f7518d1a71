package console

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/runlens/runlens/cmd/internal/members"
	"github.com/runlens/runlens/http/client"
	"github.com/runlens/runlens/http/client/report"
)

const (
	// maxShownRows of a table are in a page, inclusive; a download has all.
	maxShownRows = 500
	// A text of more than longText bytes is cut off where it does not fit, and shown whole to who points at it.
	longText = 40
)

// A head is a column of the table.
type head struct {
	Name, Text  string
	Sort        string // of aria-sort
	Href        string // the same look in the order of this column, turned if it has it already
	Number      bool
	NotAdditive bool
	About       string
}

type cell struct {
	Text   string
	Whole  string // a text that may be cut off where it is shown; empty for others
	Href   string // the look at this value alone
	Number bool
	Mark   string // of a period that is not over, or that is counted in part; empty for others
}

type table struct {
	Heads []head
	Rows  [][]cell
	Left  int // rows that are not in the page
}

func (c *Console) table(s *shown, charts []chart) *table {
	if s.rows == nil {
		return nil
	}
	t := &table{}
	model := c.model(s.look.Model)
	by, down := strings.CutSuffix(s.look.Sort, ":desc")
	for _, column := range s.rows.columns {
		h := head{Name: column.Name, Text: title(column.Name), Number: column.Numeric(), Sort: "none"}
		h.About = members.DescriptionOf(model, column.Name)
		h.NotAdditive = column.Numeric() && column.Member != "" && !metricOf(model, column.Member).Additive
		sorted := s.look
		sorted.Sort = column.Name
		if column.Numeric() {
			sorted.Sort += ":desc"
		}
		if by == column.Name {
			h.Sort, sorted.Sort = "ascending", column.Name+":desc"
			if down {
				h.Sort, sorted.Sort = "descending", column.Name
			}
		}
		h.Href = sorted.address()
		t.Heads = append(t.Heads, h)
	}
	rows := s.sorted()
	t.Left = max(len(rows)-maxShownRows, 0)
	marks := marksOf(charts)
	for _, row := range rows[:len(rows)-t.Left] {
		t.Rows = append(t.Rows, s.cells(row, marks))
	}
	return t
}

// sorted are the rows in the order that was chosen.
func (s *shown) sorted() []report.Row {
	by, down := strings.CutSuffix(s.look.Sort, ":desc")
	at := slices.IndexFunc(s.rows.columns, func(c report.Column) bool { return c.Name == by })
	if at < 0 || s.look.sortedByAPI() {
		return s.rows.rows
	}
	rows := slices.Clone(s.rows.rows)
	slices.SortStableFunc(rows, func(a, b report.Row) int {
		x, y := a[at], b[at]
		switch { // null comes last in both directions, as in the API
		case x.IsNull() && y.IsNull():
			return 0
		case x.IsNull():
			return 1
		case y.IsNull():
			return -1
		case down:
			x, y = y, x
		}
		f, ok := x.Float64()
		if g, ok2 := y.Float64(); ok && ok2 {
			return cmp.Compare(f, g)
		}
		return strings.Compare(x.String(), y.String())
	})
	return rows
}

func (s *shown) cells(row report.Row, marks map[string]string) (cells []cell) {
	for i, column := range s.rows.columns {
		v := row[i]
		c := cell{Text: shownValue(column, v), Number: column.Numeric()}
		if !c.Number && len(c.Text) > longText {
			c.Whole = c.Text
		}
		switch {
		case column.Kind == report.Text && v.IsNull() && column.Name == column.Member:
			c.Text = "(none)"
		case column.Kind == report.Text && column.Name == column.Member && fits(v):
			c.Href = s.look.onlyValue(column.Name, v.String()).address()
		case column.Kind == report.Date && !v.IsNull():
			c.Mark = marks[v.String()]
			if covered, ok := s.period(v.String()); ok && covered != s.span {
				c.Href = s.look.narrowed(covered).address()
			}
		}
		cells = append(cells, c)
	}
	return cells
}

// fits reports whether a filter can choose a value, which null is none of.
func fits(v client.Value) bool {
	return v.String() != "" && len([]rune(v.String())) <= client.MaxFilterLength
}

// period is what the range covers of the period that begins on a day.
func (s *shown) period(first string) (report.Span, bool) {
	day, err := time.Parse(time.DateOnly, first)
	if err != nil {
		return report.Span{}, false
	}
	if s.look.Grain == "" {
		return report.Span{Start: day, End: day}, true
	}
	whole := s.rows.question.Periods(report.Span{Start: day, End: day})[0].Whole
	if whole.Start.Before(s.span.Start) {
		whole.Start = s.span.Start
	}
	if whole.End.After(s.span.End) {
		whole.End = s.span.End
	}
	return whole, true
}

// marksOf says of the first days of periods what is open of them.
func marksOf(charts []chart) map[string]string {
	marks := make(map[string]string)
	if len(charts) > 0 {
		for _, i := range charts[0].Open {
			day := time.Unix(charts[0].Days[i], 0).UTC().Format(time.DateOnly)
			if marks[day] = "not over"; slices.Contains(charts[0].Part, i) {
				marks[day] = "in part"
			}
		}
	}
	return marks
}
