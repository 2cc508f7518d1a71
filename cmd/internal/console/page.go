package console

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/runlens/runlens/http/client"
	"github.com/runlens/runlens/http/client/report"
)

// A page is what every template gets.
type page struct {
	Title string
	First bool   // the browser is to name its zone before anything is asked
	Zone  string // of the first page, as the browser named it; empty otherwise
	Here  string // where a page that shows nothing leads; empty for nowhere
	Nav   []link

	Look    look
	Model   client.Model
	Models  []client.Model
	Periods []choice
	Chips   []chip
	Span    report.Span // of the look; zero if it names none
	Answer  *answerView // nil while it is to be asked for

	Save     *saveView
	Board    *boardView
	Fault    *faultView
	Operator *operatorView
}

type link struct {
	Text, Href string
	Here       bool
	Faulty     bool // leads to a dashboard that can't be shown
}

// A choice is one of a list.
type choice struct {
	Value, Text string
	Chosen      bool
}

// A chip is one value of a filter.
type chip struct{ Member, Name, Without string }

// An answerView is what the page shows of an answer.
type answerView struct {
	Look    look
	Refused *refusal // instead of everything else
	Prefix  string   // of ids, where several answers are in a page

	Crumbs    []link
	Empty     *emptyView // instead of drawings
	Offer     *offerView // instead of rows that take too many queries
	Tiles     []tile
	Until     string // the last day that is compared, where today is left out
	Leaders   []leadersView
	Charts    []chart
	Bars      []bars
	Table     *table
	Notes     []string
	AsOf      string
	Stale     *refusal // why there is no newer one; nil otherwise
	Age       string   // of a stale one
	Took      string
	Rows      int
	Downloads []link
	Copies    []snippet
	Days      []hidden // the look without its days, for dragging

	FewLeftOut bool // as in shown
}

// A tile is a total of the whole period, from a query of its own.
type tile struct {
	Metric, Name, Value, About string
	Change                     change
	NotAdditive                bool
	Open                       bool // the period is not over

	// Of the first page alone: where it leads, whether it is drawn, and its line by day.
	Href  string
	Drawn bool
	Spark spark
}

// An emptyView is what a person can change to see something.
type emptyView struct {
	Text  string
	Links []link
	Hint  bool // that there may be no records at all

	OnlyToday bool // the day that a comparison leaves out has something
}

// An offerView says what an answer costs, and which ones cost less.
type offerView struct {
	Text  string
	Links []link
}

type hidden struct{ Name, Value string }

func (c *Console) explorePage(l look) page {
	p := page{Title: "Explore", Look: l, Model: c.model(l.Model)}
	c.mu.Lock()
	p.Models = c.catalog.Models
	c.mu.Unlock()
	p.Span, _ = l.Span(c.Now()) // the answer says what is wrong with it
	p.Periods = c.periodChoices(l)
	p.Chips = c.chips(l)
	p.Save = c.saveView(l)
	return p
}

func (c *Console) nav(here string) []link {
	links := []link{{Text: "Explore", Href: "explore"}}
	all, faults := c.dashboards()
	for _, d := range all {
		links = append(links, link{Text: d.Title, Href: dashboardAddress(d.file)})
	}
	for _, f := range faults {
		links = append(links, link{Text: f.title(), Href: dashboardAddress(f.file), Faulty: true})
	}
	if len(c.Admin) > 0 {
		links = append(links, link{Text: "Operator", Href: "operator"})
	}
	for i := range links {
		links[i].Here = links[i].Href == here
	}
	return links
}

// periodChoices are the periods of the form. Others, as an address may have them, are added.
func (c *Console) periodChoices(l look) []choice {
	today := report.TodayIn(l.Timezone, c.Now())
	last := func(grain string) string { // the whole one before today's
		q := report.Question{Grain: grain, WeekStart: l.WeekStart}
		before := q.Periods(report.Span{Start: today, End: today})[0].Whole.Start.AddDate(0, 0, -1)
		whole := q.Periods(report.Span{Start: before, End: before})[0].Whole
		return "end=" + whole.End.Format(time.DateOnly) + "&start=" + whole.Start.Format(time.DateOnly)
	}
	choices := []choice{
		{Value: "today=true", Text: "Today"}, {Value: "yesterday=true", Text: "Yesterday"},
		{Value: "last=7d", Text: "Last 7 days"}, {Value: "last=30d", Text: "Last 30 days"},
		{Value: "last=90d", Text: "Last 90 days"}, {Value: "last=12w", Text: "Last 12 weeks"},
		{Value: last("week"), Text: "Last week"}, {Value: "last=1mo", Text: "This month"},
		{Value: last("month"), Text: "Last month"}, {Value: "last=12mo", Text: "Last 12 months"},
		{Value: "last=366d", Text: "Last 366 days"}, {Value: "days", Text: "From day to day …"},
	}
	period := l.period()
	if period == "" {
		period = "last=30d"
	}
	at := slices.IndexFunc(choices, func(c choice) bool { return c.Value == period })
	if at < 0 && l.Start == "" {
		choices = append(choices, choice{Value: period, Text: capital(periodText(period))})
		at = len(choices) - 1
	}
	if at < 0 {
		at = slices.IndexFunc(choices, func(c choice) bool { return c.Value == "days" })
	}
	choices[at].Chosen = true
	return choices
}

func (c *Console) chips(l look) (chips []chip) {
	for i, text := range l.Filter {
		f, err := report.ParseFilter(text)
		if err != nil {
			continue
		}
		for n, value := range f.Values {
			without := l
			rest := slices.Delete(slices.Clone(f.Values), n, n+1)
			without.Filter = slices.Clone(l.Filter)
			if without.Filter[i] = report.FilterText(f.Member, rest...); len(rest) == 0 {
				without.Filter = slices.Delete(without.Filter, i, i+1)
			}
			chips = append(chips, chip{words(f.Member), c.name(f.Member, value), without.address()})
		}
	}
	return chips
}

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"words": words, "title": title, "has": slices.Contains[[]string], "asset": versioned,
}).ParseFS(files, "templates/*.html"))

// render writes a page. A template that fails leaves nothing half written.
func (c *Console) render(w http.ResponseWriter, name string, content any) {
	var text bytes.Buffer
	if err := templates.ExecuteTemplate(&text, name, content); err != nil {
		http.Error(w, "the page cannot be shown: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Write(text.Bytes())
}

// versioned is the address of an asset. It changes with the content, so that a browser never shows an older one.
func versioned(name string) (string, error) {
	content, err := files.ReadFile("assets/" + name)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(content)
	return "/assets/" + name + "?" + hex.EncodeToString(sum[:6]), nil
}

// Query is the look's part of its address; of the first page it is the zone alone.
func (p page) Query() template.URL {
	if p.Zone != "" {
		return template.URL(url.Values{"zone": {p.Zone}}.Encode())
	}
	return template.URL(p.Look.values().Encode())
}

// Kept are the fields of the look that the form has no box for.
func (p page) Kept() (fields []hidden) {
	for _, name := range p.Look.groups() {
		fields = append(fields, hidden{"dimensions", name})
	}
	values := p.Look.values()
	values["metrics"] = p.Look.Metrics
	if len(p.Look.Wider) > 0 {
		values["periods"] = append(slices.Clone(p.Look.Wider), p.Look.period())
	}
	for _, name := range []string{"metrics", "filter", "order", "limit", "top", "by", "sort", "week-start", "periods"} {
		for _, text := range values[name] {
			fields = append(fields, hidden{name, text})
		}
	}
	return fields
}

// Units are those of time.
func (page) Units() []string { return []string{"day", "week", "month"} }

// Over is the look's unit of time.
func (p page) Over() string { return p.Look.over() }
