package console

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/runlens/runlens/cmd/internal/report"
	"github.com/runlens/runlens/http/client"
	"github.com/runlens/runlens/olap/daterange"
)

// A chart draws one metric over time. It is what console.js reads.
type chart struct {
	ID       string   `json:"id"`
	Metric   string   `json:"metric"`
	Sentence string   `json:"sentence"`
	Kind     string   `json:"kind"` // line or bar
	Rate     bool     `json:"rate"`
	Unit     string   `json:"unit"` // day, week or month
	Days     []int64  `json:"days"` // the first of each period, as seconds of its midnight in UTC
	Lasts    []string `json:"lasts"`
	Firsts   []string `json:"firsts"` // with Lasts, the days that a period covers
	// Open are the positions of periods that are not over, or that the range covers a part of.
	Open   []int    `json:"open"`
	Series []series `json:"series"`
	Zoom   bool     `json:"zoom"` // days can be chosen by dragging

	Summary string `json:"-"` // the chart in words, for who can't see it
}

// A series is a line or the bars of a group; a position without a row has no value.
type series struct {
	Name   string     `json:"name"`
	Before bool       `json:"before"` // the values of the period that is compared with
	Values []*float64 `json:"values"`
}

// maxCompared is for how many groups the earlier values are drawn too; the table has all of them.
const maxCompared = 3

// charts are those of a look over time, one for each metric: their scales differ.
func (c *Console) charts(s *shown, prefix string) []chart {
	if s.rows == nil || s.look.over() == "" {
		return nil
	}
	periods := s.rows.question.Periods(s.span)
	today := report.TodayIn(s.look.Timezone, c.Now())
	at := make(map[string]int, len(periods))
	plain := chart{Kind: s.look.Chart, Unit: s.look.over(), Open: []int{}}
	for _, p := range periods {
		if p.Start.After(today) {
			break // nothing can have happened
		}
		if hours(p.Span, s.look.Timezone) == 0 {
			continue // the zone has no such day
		}
		if !p.Whole.End.Before(today) || p.Whole != p.Span {
			plain.Open = append(plain.Open, len(plain.Days))
		}
		at[p.Whole.Start.Format(time.DateOnly)] = len(plain.Days)
		plain.Days = append(plain.Days, p.Whole.Start.Unix())
		plain.Firsts = append(plain.Firsts, p.Start.Format(time.DateOnly))
		plain.Lasts = append(plain.Lasts, p.End.Format(time.DateOnly))
	}
	var all []chart
	for i, column := range s.rows.columns {
		if !column.Numeric() || column.Member == "" || strings.HasSuffix(column.Name, "_previous") {
			continue
		}
		drawn := plain
		drawn.ID, drawn.Metric = fmt.Sprintf("%schart-%s", prefix, column.Name), column.Name
		drawn.Rate = isRate(column.Name)
		drawn.Sentence = c.sentence(s.look, s.span, column.Name)
		drawn.Series = seriesOf(s, i, at, len(plain.Days))
		drawn.Summary = drawn.inWords()
		all = append(all, drawn)
	}
	return all
}

// seriesOf are the values of a column, by group: the group with the most runs is the first one.
func seriesOf(s *shown, column int, at map[string]int, length int) (all []series) {
	a := s.rows
	date := slices.IndexFunc(a.columns, func(c report.Column) bool { return c.Kind == report.Date })
	compared := column+1 < len(a.columns) && a.columns[column+1].Name == a.columns[column].Name+"_previous"
	var groups []string
	names := groupNames(a)
	now, before := make(map[string]series), make(map[string]series)
	for _, row := range a.rows {
		group := groupOf(a.columns, row)
		if _, known := now[group]; !known {
			groups = append(groups, group)
			name := names[group]
			now[group] = series{Name: name, Values: make([]*float64, length)}
			before[group] = series{Name: name, Before: true, Values: make([]*float64, length)}
		}
		if day, ok := at[row[date].String()]; ok {
			now[group].Values[day] = number(row[column])
			if compared {
				before[group].Values[day] = number(row[column+1])
			}
		}
	}
	slices.SortStableFunc(groups, func(a, b string) int { return s.rank[a] - s.rank[b] })
	for _, group := range groups {
		all = append(all, now[group])
	}
	if compared && len(groups) <= maxCompared {
		for _, group := range groups {
			all = append(all, before[group])
		}
	}
	return all
}

func number(v client.Value) *float64 {
	if f, ok := v.Float64(); ok {
		return &f
	}
	return nil
}

// groupName names a row's group: by names where it has them, else by identifiers.
func groupName(columns []report.Column, row report.Row) string {
	var parts []string
	for i, column := range columns {
		if column.Kind != report.Text || column.Name != column.Member {
			continue
		}
		part := shownText(row[i])
		if i+1 < len(columns) && columns[i+1].Member == column.Member && columns[i+1].Name != column.Name &&
			!row[i+1].IsNull() {
			part = row[i+1].String()
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}

// groupNames are the names of all groups of an answer. Those that share a name are told apart by their identifiers.
func groupNames(a *answer) map[string]string {
	names, count := make(map[string]string), make(map[string]int)
	for _, row := range a.rows {
		group := groupOf(a.columns, row)
		if _, known := names[group]; !known {
			names[group] = groupName(a.columns, row)
			count[names[group]]++
		}
	}
	for _, row := range a.rows {
		group := groupOf(a.columns, row)
		if count[names[group]] < 2 {
			continue
		}
		for i, column := range a.columns {
			if column.Kind == report.Text && column.Name == column.Member {
				names[group] += " (" + shorten(shownText(row[i]), 5) + ")"
			}
		}
	}
	return names
}

func shownText(v client.Value) string {
	if v.IsNull() {
		return "(none)"
	}
	return v.String()
}

// inWords is what a chart shows, for who can't see it: the extremes of its first lines.
func (c chart) inWords() string {
	var said []string
	for _, s := range c.Series {
		if s.Before || len(said) == maxCompared {
			continue
		}
		low, high := -1, -1
		for i, v := range s.Values {
			if v == nil || slices.Contains(c.Open, i) {
				continue // what is not over would always be the lowest
			}
			if low < 0 || *v < *s.Values[low] {
				low = i
			}
			if high < 0 || *v > *s.Values[high] {
				high = i
			}
		}
		if low < 0 {
			continue
		}
		column := report.Column{Name: c.Metric, Kind: report.Number}
		text := func(i int) string {
			return shownValue(column, client.Float64Value(*s.Values[i])) + " on " + c.Firsts[i]
		}
		said = append(said, strings.TrimPrefix(s.Name+": ", ": ")+"lowest "+text(low)+", highest "+text(high))
	}
	if len(said) == 0 {
		return "There are no values."
	}
	return strings.Join(said, "; ") + "."
}

// hours are those of whole days in a zone, by its clock changes; 0 for a day that the zone skipped.
func hours(span report.Span, zone string) float64 {
	r, err := daterange.Parse(span.Start.Format(time.DateOnly), span.End.Format(time.DateOnly), zone)
	if err != nil {
		return float64(24 * span.Days())
	}
	return r.EndUTC.Sub(r.StartUTC).Hours()
}

// clockChanges says which days of a span are shorter or longer than others: their counts are too.
func clockChanges(span report.Span, zone string) (notes []string) {
	for _, p := range (report.Question{}).Periods(span) {
		switch h := hours(p.Span, zone); {
		case h == 0:
			notes = append(notes, fmt.Sprintf("%s was skipped in %s: it has no hours.", p.Span, zone))
		case h != 24:
			notes = append(notes, fmt.Sprintf("%s has %g hours in %s: its clocks change.", p.Span, h, zone))
		}
	}
	return notes
}

// A bar is a group of a look without time.
type bar struct {
	Name, Value string
	Href        string // the look at it alone; empty where no filter can choose it
	Y, Width    int    // of the drawing, which is barsWidth wide
	Before      int    // the width of the earlier value; 0 without one
	Text        int    // where the value is written
}

// A bars drawing is one metric by group.
type bars struct {
	ID, Metric, Sentence string
	Bars                 []bar
	Height               int
	More                 int // how many rows of the table are not drawn
}

const (
	barsWidth = 480
	barHeight = 26
	nameWidth = 200
	maxBars   = 25
)

func (c *Console) bars(s *shown, prefix string) (all []bars) {
	if s.rows == nil || s.look.over() != "" {
		return nil
	}
	for i, column := range s.rows.columns {
		if !column.Numeric() || column.Member == "" || strings.HasSuffix(column.Name, "_previous") {
			continue
		}
		drawn := bars{ID: prefix + "bars-" + column.Name, Metric: column.Name, More: max(len(s.rows.rows)-maxBars, 0),
			Sentence: c.sentence(s.look, s.span, column.Name)}
		compared := s.look.Compare != ""
		rows := s.rows.rows[:len(s.rows.rows)-drawn.More]
		most := 0.0
		for _, row := range rows {
			for _, v := range row[i:min(i+2, len(row))] {
				if f := number(v); f != nil && (v == row[i] || compared) {
					most = max(most, *f)
				}
			}
		}
		names := groupNames(s.rows)
		width := func(v client.Value) int {
			if f := number(v); f != nil && most > 0 {
				return int(*f / most * (barsWidth - nameWidth - 80))
			}
			return 0
		}
		for n, row := range rows {
			b := bar{Name: shorten(names[groupOf(s.rows.columns, row)], 24), Value: shownValue(column, row[i]), Y: n * barHeight,
				Width: width(row[i]), Href: s.look.onlyGroup(s.rows.columns, row)}
			if compared {
				b.Before = width(row[i+1])
			}
			b.Text = nameWidth + max(b.Width, b.Before) + 6
			drawn.Bars = append(drawn.Bars, b)
		}
		drawn.Height = len(drawn.Bars) * barHeight
		all = append(all, drawn)
	}
	return all
}

// onlyGroup is the address of the look at a row's group; empty where a value is null, which no filter chooses.
func (l look) onlyGroup(columns []report.Column, row report.Row) string {
	for i, column := range columns {
		if column.Kind != report.Text || column.Name != column.Member {
			continue
		}
		if row[i].IsNull() || len([]rune(row[i].String())) > client.MaxFilterLength {
			return ""
		}
		l = l.onlyValue(column.Name, row[i].String())
	}
	return l.address()
}

func shorten(text string, most int) string {
	if r := []rune(text); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return text
}
