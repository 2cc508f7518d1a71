package console

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/runlens/runlens/cmd/internal/report"
)

// crumbs lead back, from all to what is shown: through the periods that were narrowed, then the filters.
func (l look) crumbs(c *Console) (crumbs []link) {
	step := l
	step.Filter = nil
	periods := append(slices.Clone(l.Wider), l.period())
	for i, period := range periods {
		step.Wider = l.Wider[:i]
		step.setPeriod(period)
		crumbs = append(crumbs, link{Text: periodText(period), Href: step.address()})
	}
	for i, text := range l.Filter {
		f, err := report.ParseFilter(text)
		if err != nil {
			continue
		}
		step.Filter = l.Filter[:i+1]
		names := make([]string, len(f.Values))
		for n, value := range f.Values {
			names[n] = c.name(f.Member, value)
		}
		crumbs = append(crumbs, link{Text: words(f.Member) + " " + strings.Join(names, ", "), Href: step.address()})
	}
	if len(crumbs) == 1 {
		return nil
	}
	crumbs[len(crumbs)-1].Here = true
	return crumbs
}

// periodText is a period of an address as people read it.
func periodText(period string) string {
	values, _ := url.ParseQuery(period) // one of our own
	switch {
	case values.Has("start") && values.Get("start") == values.Get("end"):
		return values.Get("start")
	case values.Has("start") && values.Has("end"):
		return values.Get("start") + " to " + values.Get("end")
	case period == "":
		return "last 30d"
	}
	return strings.NewReplacer("=true", "", "=", " ", "&", ", ").Replace(period)
}

// viewOf makes the view of an answer. prefix begins its ids.
func (c *Console) viewOf(s *shown, prefix string) *answerView {
	v := &answerView{Look: s.look, Prefix: prefix, Crumbs: s.look.crumbs(c), Notes: s.notes}
	v.Tiles = c.tiles(s)
	v.Charts = c.charts(s, prefix)
	for i := range v.Charts {
		v.Charts[i].Zoom = prefix == ""
	}
	v.Bars = c.bars(s, prefix)
	v.Table = c.table(s, v.Charts)
	v.AsOf = s.asOf()
	v.Took = fmt.Sprintf("%d ms", max(s.totals.took, s.took()).Milliseconds())
	if s.rows != nil {
		v.Rows = len(s.rows.rows)
		if s.rows.facts.More {
			v.Notes = append(v.Notes, fmt.Sprintf("There are further rows: only the first %d are here, and sorted.", v.Rows))
		}
	}
	v.Notes = append(v.Notes, clockChanges(s.span, s.look.Timezone)...)
	if s.look.Compare != "" && s.rows != nil && len(v.Charts) > 0 && s.rows.groups() > maxCompared {
		v.Notes = append(v.Notes, fmt.Sprintf("Earlier values are drawn for up to %d groups; the table has all.",
			maxCompared))
	}
	if s.failed != nil {
		v.Stale, v.Age = s.failed.line, ago(c.Now().Sub(s.totals.at))
	}
	values := s.look.values()
	for _, name := range slices.Sorted(maps.Keys(values)) {
		for _, text := range values[name] {
			if !slices.Contains(periodFields, name) {
				v.Days = append(v.Days, hidden{name, text})
			}
		}
	}
	v.Days = append(v.Days, hidden{"wider", s.look.period()})
	for _, format := range downloads {
		v.Downloads = append(v.Downloads, link{Text: format.text,
			Href: "download?format=" + format.name + "&" + s.look.values().Encode()})
	}
	v.Copies = c.copies(s)
	return v
}

func (s *shown) took() time.Duration {
	if s.rows == nil {
		return 0
	}
	return s.rows.took
}

// groups is how many the answer has rows of.
func (a *answer) groups() int {
	found := make(map[string]bool)
	for _, row := range a.rows {
		found[groupOf(a.columns, row)] = true
	}
	return len(found)
}

// asOf is the boundary of the answers, or the first and the last one of several.
func (s *shown) asOf() string {
	first, last := s.totals.facts.AsOf, s.totals.facts.AsOfLast
	if s.rows != nil {
		if s.rows.facts.AsOf.Before(first) {
			first = s.rows.facts.AsOf
		}
		if s.rows.facts.AsOfLast.After(last) {
			last = s.rows.facts.AsOfLast
		}
	}
	const form = "2006-01-02 15:04:05 UTC"
	if last.Sub(first) < time.Second {
		return first.UTC().Format(form)
	}
	return first.UTC().Format(form) + " to " + last.UTC().Format("15:04:05 UTC")
}

func (c *Console) tiles(s *shown) (tiles []tile) {
	if len(s.totals.rows) == 0 {
		return nil
	}
	row, model := s.totals.rows[0], c.model(s.look.Model)
	open := !s.span.End.Before(report.TodayIn(s.look.Timezone, c.Now()))
	for i, column := range s.totals.columns {
		if column.Member == "" || strings.HasSuffix(column.Name, "_previous") {
			continue
		}
		metric := metricOf(model, column.Name)
		t := tile{Name: title(column.Name), Value: shownValue(column, row[i]), About: metric.Description,
			NotAdditive: !metric.Additive, Open: open}
		if s.look.Compare != "" && i+3 < len(row) {
			by := i + 3 // the change in percent; of a rate, that is in percent itself, the difference
			if isRate(column.Name) {
				by = i + 2
			}
			t.Change, t.Before = shownValue(s.totals.columns[by], row[by]), shownValue(column, row[i+1])
		}
		tiles = append(tiles, t)
	}
	return tiles
}
