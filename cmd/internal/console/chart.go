package console

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/runlens/runlens/cmd/internal/output"
	"github.com/runlens/runlens/http/client"
	"github.com/runlens/runlens/http/client/report"
)

// A chart draws one metric over time. It is what console.js reads.
type chart struct {
	ID       string   `json:"id"`
	Metric   string   `json:"metric"`
	Name     string   `json:"name"` // of the metric, in words
	File     string   `json:"file"` // of its picture, without an ending
	Sentence string   `json:"sentence"`
	Kind     string   `json:"kind"` // line or bar
	Rate     bool     `json:"rate"`
	Unit     string   `json:"unit"` // day, week or month
	Days     []int64  `json:"days"` // the first of each period, as seconds of its midnight in UTC
	Lasts    []string `json:"lasts"`
	Firsts   []string `json:"firsts"` // with Lasts, the days that a period covers
	// Open are the positions of periods that are not over, or that the range covers a part of; Part those of them that
	// are over.
	Open   []int    `json:"open"`
	Part   []int    `json:"part"`
	Series []series `json:"series"`
	Zoom   bool     `json:"zoom"` // days can be chosen by dragging

	Summary string `json:"-"` // the chart in words, for who can't see it
}

// A series is a line or the bars of a group; a position without a row has no value.
type series struct {
	Name   string     `json:"name"`
	Others bool       `json:"others"` // all groups that are not drawn
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
	today, counted := s.today(), s.rows.counted()
	at := make(map[string]int, len(periods))
	plain := chart{Kind: s.look.Chart, Unit: s.look.over(), Open: []int{}, Part: []int{}}
	for _, p := range periods {
		if p.Start.After(today) {
			break // nothing can have happened
		}
		if hours(p.Span, s.look.Timezone) == 0 {
			continue // the zone has no such day
		}
		switch over := p.Whole.End.Before(today); {
		case !over:
			plain.Open = append(plain.Open, len(plain.Days))
		case p.Whole != p.Span:
			plain.Open, plain.Part = append(plain.Open, len(plain.Days)), append(plain.Part, len(plain.Days))
		}
		if p.End.After(counted.End) {
			p.End = counted.End
		}
		at[p.Whole.Start.Format(time.DateOnly)] = len(plain.Days)
		plain.Days = append(plain.Days, p.Whole.Start.Unix())
		plain.Firsts = append(plain.Firsts, p.Start.Format(time.DateOnly))
		plain.Lasts = append(plain.Lasts, p.End.Format(time.DateOnly))
	}
	var all []chart
	for i, column := range s.rows.columns {
		if !column.Numeric() || column.Member == "" || strings.HasSuffix(column.Name, report.EndPrevious) {
			continue
		}
		drawn := plain
		drawn.ID, drawn.Metric = fmt.Sprintf("%schart-%s", prefix, column.Name), column.Name
		drawn.Name = words(column.Name)
		drawn.Rate = isRate(column.Name)
		drawn.Sentence = c.sentence(s.look, counted, column.Name, s.only)
		drawn.Series = seriesOf(s, i, at, len(plain.Days))
		if drawn.Series = slices.DeleteFunc(drawn.Series, series.empty); len(drawn.Series) == 0 {
			continue
		}
		if s.days != nil && c.metricAdds(s, column.Name) {
			drawn.others(s, at)
		}
		drawn.File = fileName(drawn.Sentence)
		drawn.Summary = drawn.inWords()
		all = append(all, drawn)
	}
	return all
}

// seriesOf are the values of a column, by group: the group with the most runs is the first one.
func seriesOf(s *shown, column int, at map[string]int, length int) (all []series) {
	a := s.rows
	date := slices.IndexFunc(a.columns, func(c report.Column) bool { return c.Kind == report.Date })
	compared := column+1 < len(a.columns) && a.columns[column+1].Name == a.columns[column].Name+report.EndPrevious
	var groups []string
	names := groupNames(a)
	now, before := make(map[string]series), make(map[string]series)
	for _, row := range a.rows {
		group := output.GroupOf(a.columns, row)
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

// empty reports whether a series has no value.
func (s series) empty() bool {
	return !slices.ContainsFunc(s.Values, func(v *float64) bool { return v != nil })
}

// metricAdds reports whether what is not drawn of a metric is known: its days less the drawn groups.
func (c *Console) metricAdds(s *shown, metric string) bool {
	return s.look.over() == "day" && len(s.look.groups()) > 0 && metricOf(c.model(s.look.Model), metric).Additive
}

// others adds a line for the groups that are not drawn, where they have any value.
func (c *chart) others(s *shown, at map[string]int) {
	column := slices.IndexFunc(s.days.columns, func(d report.Column) bool { return d.Name == c.Metric })
	day := slices.IndexFunc(s.days.columns, func(d report.Column) bool { return d.Kind == report.Date })
	if column < 0 || day < 0 {
		return
	}
	rest, any := make([]*float64, len(c.Days)), false
	for _, row := range s.days.rows {
		i, known := at[row[day].String()]
		total := number(row[column])
		if !known || total == nil {
			continue
		}
		left := *total
		for _, drawn := range c.Series {
			if v := drawn.Values[i]; v != nil && !drawn.Before {
				left -= *v
			}
		}
		if left = max(left, 0); left > 0 { // the answers may be of two moments
			any = true
		}
		rest[i] = &left
	}
	if any {
		c.Series = append(c.Series, series{Name: "others", Others: true, Values: rest})
	}
}

var notInNames = regexp.MustCompile(`[^\p{L}\p{N}]+`)

// fileName is a sentence as the name of a file, without an ending.
func fileName(sentence string) string {
	return strings.ToLower(strings.Trim(shorten(notInNames.ReplaceAllString(sentence, "-"), 100), "-…"))
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
			visible(row[i+1].String()) {
			part = row[i+1].String()
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}

// groupNames are the names of all groups of an answer. Those that share a name are told apart by the beginnings of
// their identifiers, or by whole ones where these begin alike, as phone numbers do.
func groupNames(a *answer) map[string]string {
	names, first, count := make(map[string]string), make(map[string]report.Row), make(map[string]int)
	for _, row := range a.rows {
		group := output.GroupOf(a.columns, row)
		if _, known := names[group]; !known {
			names[group], first[group] = groupName(a.columns, row), row
			count[names[group]]++
		}
	}
	for _, most := range []int{5, maxIdentifier} {
		shared := make(map[string]int)
		for group, row := range first {
			name := groupName(a.columns, row)
			if count[names[group]] < 2 {
				continue
			}
			for i, column := range a.columns {
				if column.Kind == report.Text && column.Name == column.Member {
					name += " (" + shorten(shownText(row[i]), most) + ")"
				}
			}
			names[group] = name
			shared[name]++
		}
		count = shared
	}
	return names
}

// maxIdentifier is how many characters an identifier has at most.
const maxIdentifier = 320

// visible reports whether a name shows anything. Records may have an empty one, which names nobody and no link.
func visible(name string) bool {
	return strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsSpace(r) && !output.Hidden(r) })
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
		text := func(i int) string { return numberText(c.Metric, *s.Values[i]) + " on " + datesIn(c.Firsts[i]) }
		said = append(said, strings.TrimPrefix(s.Name+": ", ": ")+"lowest "+text(low)+", highest "+text(high))
	}
	if len(said) == 0 {
		return "There are no values."
	}
	return strings.Join(said, "; ") + "."
}
