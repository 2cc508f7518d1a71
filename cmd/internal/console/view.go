package console

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/runlens/runlens/cmd/internal/output"
	"github.com/runlens/runlens/cmd/internal/profile"
	"github.com/runlens/runlens/http/client/report"
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

var (
	lastPeriod = regexp.MustCompile(`^last=([0-9]+)(d|w|mo)$`)
	units      = map[string]string{"d": "days", "w": "weeks", "mo": "months"}
)

// periodText is a period of an address as people read it.
func periodText(period string) string {
	values, _ := url.ParseQuery(period) // one of our own
	parts := lastPeriod.FindStringSubmatch(cmp.Or(period, "last=30d"))
	switch {
	case parts != nil:
		return "last " + parts[1] + " " + units[parts[2]]
	case values.Has("start") && values.Get("start") == values.Get("end"):
		return datesIn(values.Get("start"))
	case values.Has("start") && values.Has("end"):
		return datesIn(values.Get("start") + " to " + values.Get("end"))
	}
	return strings.NewReplacer("=true", "", "=", " ", "&", ", ").Replace(period)
}

// viewOf makes the view of an answer. prefix begins its ids.
func (c *Console) viewOf(s *shown, prefix string) *answerView {
	v := &answerView{Look: s.look, Prefix: prefix, Crumbs: s.look.crumbs(c), Empty: c.empty(s), Offer: s.offer(),
		FewLeftOut: s.fewLeftOut}
	v.Tiles = c.tiles(s)
	if until := s.totals.counted().End; s.look.Compare != "" && !until.Equal(s.totals.span.End) {
		v.Until = dayText(until)
	}
	for _, note := range s.notes {
		if v.Until == "" || !strings.Contains(note, " is not over: ") { // which is said above the chart
			v.Notes = append(v.Notes, datesIn(note))
		}
	}
	v.Leaders = c.leadersViews(s)
	v.Charts = c.charts(s, prefix)
	for i := range v.Charts {
		v.Charts[i].Zoom = prefix == ""
	}
	v.Bars = c.bars(s, prefix)
	v.Table = c.table(s, v.Charts)
	v.AsOf = s.asOf()
	took := s.totals.took
	if s.rows != nil {
		took = max(took, s.rows.took)
		v.Rows = len(s.rows.rows)
		if s.rows.facts.More {
			v.Notes = append(v.Notes, fmt.Sprintf("There are further rows: only the first %d are here, and sorted.", v.Rows))
		}
	}
	v.Took = fmt.Sprintf("%d ms", took.Milliseconds())
	for _, note := range clockChanges(s.span, s.look.Timezone) {
		v.Notes = append(v.Notes, datesIn(note))
	}
	if s.look.Compare != "" && s.rows != nil && len(v.Charts) > 0 && s.rows.groups() > maxCompared {
		v.Notes = append(v.Notes, fmt.Sprintf("Earlier values are drawn for up to %d groups; the table has all.",
			maxCompared))
	}
	if s.failed != nil {
		v.Stale, v.Age = s.failed, ago(c.Now().Sub(s.totals.at))
	}
	values := s.look.values()
	for _, name := range slices.Sorted(maps.Keys(values)) {
		for _, text := range values[name] {
			if !slices.Contains(profile.PeriodFields, name) {
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

// groups is how many the answer has rows of.
func (a *answer) groups() int {
	found := make(map[string]bool)
	for _, row := range a.rows {
		found[output.GroupOf(a.columns, row)] = true
	}
	return len(found)
}

// asOf is the boundary of the answers, or the first and the last one of several.
func (s *shown) asOf() string {
	first, last := s.totals.facts.AsOf, s.totals.facts.AsOfLast
	for _, a := range s.answers() {
		if a.facts.AsOf.Before(first) {
			first = a.facts.AsOf
		}
		if a.facts.AsOfLast.After(last) {
			last = a.facts.AsOfLast
		}
	}
	const form = "2 Jan 2006, 15:04:05 UTC"
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
	open := s.totals.facts.Range.End >= s.today().Format(time.DateOnly)
	for i, column := range s.totals.columns {
		if column.Member == "" || strings.HasSuffix(column.Name, report.EndPrevious) {
			continue
		}
		metric := metricOf(model, column.Name)
		t := tile{Metric: column.Name, Name: title(column.Name), Value: shownValue(column, row[i]),
			About: metric.Description, NotAdditive: !metric.Additive, Open: open,
			Change: changeOf(s.totals.columns, row, i)}
		if s.days != nil {
			drawn := s.look
			drawn.Metrics, drawn.Sort = []string{column.Name}, ""
			t.Href, t.Drawn = drawn.address(), slices.Contains(s.look.Metrics, column.Name)
			t.Spark = c.spark(s, column)
		}
		tiles = append(tiles, t)
	}
	return tiles
}

// counts reports whether an answer, or what it is compared with, has anything that is not 0, and whether it lacks a
// count: only a key that leaves out groups of too few people is given none.
func (a *answer) counts() (some, few bool) {
	for _, row := range a.rows {
		for i, column := range a.columns {
			f := number(row[i])
			some = some || column.Member != "" && f != nil && (*f != 0 || column.Kind != report.Count)
			few = few || f == nil && column.Member == column.Name && column.Kind == report.Count
		}
	}
	return some, few
}

// empty says what to change where nothing was counted; nil where something was.
func (c *Console) empty(s *shown) *emptyView {
	some, few := s.totals.counts()
	if some {
		return nil
	}
	span := s.totals.counted()
	days := "from " + dayText(span.Start) + " to " + dayText(span.End)
	if span.Start.Equal(span.End) {
		days = "on " + dayText(span.Start)
	}
	e := &emptyView{Text: "Nothing was counted " + days + "."}
	if few {
		e.Text = "There were too few people for the key of this console, or nobody, " + days + "."
	}
	if len(s.look.Filter) > 0 {
		e.Text = strings.TrimSuffix(e.Text, ".") + " with these filters."
		wider := s.look
		wider.Filter = nil
		e.Links = append(e.Links, link{Text: "Without filters", Href: wider.address()})
	}
	if s.look.Compare != "" && s.days != nil {
		e.OnlyToday, _ = s.days.counts()
	}
	if e.OnlyToday {
		whole := s.look
		whole.Compare, whole.Weekdays = "", false
		e.Links = append(e.Links, link{Text: "With today, not compared", Href: whole.address()})
	}
	e.Hint = len(s.look.Filter) == 0 && s.span.Days() >= 30 && !few && !e.OnlyToday
	for _, period := range []string{"last=30d", "last=90d", "last=366d"} {
		wider := s.look
		if wider.setPeriod(period); s.look.period() != period {
			e.Links = append(e.Links, link{Text: capital(periodText(period)), Href: wider.address()})
		}
	}
	return e
}

// offer is what is asked for with fewer queries; nil where nothing was left out.
func (s *shown) offer() *offerView {
	if s.costly == 0 {
		return nil
	}
	o := &offerView{Text: fmt.Sprintf("By %s this takes %d queries. A key may send 60 a minute unless the server says "+
		"otherwise, so this may wait.", s.look.over(), s.costly)}
	for _, grain := range []string{"month", "day"} {
		fewer := s.look
		if fewer.setOver(grain); s.look.over() != grain {
			o.Links = append(o.Links, link{Text: "By " + grain, Href: fewer.address()})
		}
	}
	patient := s.look
	patient.Patient = true
	o.Links = append(o.Links, link{Text: "Wait for it", Href: patient.address()})
	return o
}
