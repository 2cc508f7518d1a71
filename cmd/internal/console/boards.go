package console

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// A boardView is what the page of a dashboard shows.
type boardView struct {
	Title   string
	Refresh int // seconds; 0 for never
	Span    string
	Zone    string
	Panels  []panelView
	Form    []hidden
}

type panelView struct {
	Title, ID, Address, Explore string
	Delay                       int // milliseconds until it is asked
}

// find is a dashboard that the console offers; others are files that a page must not name.
func (c *Console) find(file string) (*dashboard, error) {
	for _, d := range c.dashboards() {
		if d.file == file {
			return d, nil
		}
	}
	if slices.Contains(c.Dashboards, file) {
		return c.readDashboard(file) // says what is wrong with it now
	}
	return nil, errors.New("there is no such dashboard")
}

// heading is what the panel is called.
func (p panel) heading() string {
	names := make([]string, len(p.look.Metrics))
	for i, metric := range p.look.Metrics {
		names[i] = words(metric)
	}
	return cmp.Or(p.Title, capital(strings.Join(names, ", ")))
}

// withRange is the look of a panel over the period and in the zone that the page has chosen, if it has.
func (p panel) withRange(values url.Values) look {
	l := p.look
	if period := values.Get("period"); period == "days" && values.Get("start") != "" {
		l.setPeriod("start=" + values.Get("start") + "&end=" + values.Get("end"))
	} else if period != "" && period != "days" {
		l.setPeriod(period)
	}
	l.Timezone = cmp.Or(values.Get("timezone"), l.Timezone)
	return l
}

func (c *Console) dashboard(w http.ResponseWriter, r *http.Request) {
	values := r.URL.Query()
	d, err := c.find(values.Get("file"))
	if err != nil {
		c.failure(w, r, http.StatusNotFound, err.Error())
		return
	}
	first := d.Panels[0].withRange(values)
	p := page{Title: d.Title, Nav: c.nav(dashboardAddress(d.file)), Look: first, Periods: c.periodChoices(first)}
	p.Span, _ = first.Span(c.Now())
	p.Board = &boardView{Title: d.Title, Refresh: int(d.Refresh.Seconds()), Zone: first.Timezone,
		Form: []hidden{{"file", d.file}}}
	for i, one := range d.Panels {
		l := one.withRange(values)
		address := url.Values{"file": {d.file}, "panel": {fmt.Sprint(i)}}
		for _, name := range []string{"period", "start", "end", "timezone"} {
			if values.Has(name) {
				address.Set(name, values.Get(name))
			}
		}
		v := panelView{Title: one.heading(), ID: fmt.Sprintf("panel-%d", i),
			Address: "panel?" + address.Encode(), Explore: l.address()}
		if d.Refresh > 0 { // the panels are asked one after another, all over the interval
			v.Delay = int(d.Refresh.Milliseconds()) * i / len(d.Panels)
		}
		p.Board.Panels = append(p.Board.Panels, v)
	}
	c.render(w, "dashboard.html", p)
}

// panel answers one panel. Pages that show the same dashboard share the answers.
func (c *Console) panel(w http.ResponseWriter, r *http.Request) {
	values := r.URL.Query()
	d, err := c.find(values.Get("file"))
	var n int
	if err == nil {
		_, err = fmt.Sscan(values.Get("panel"), &n)
	}
	if err != nil || n < 0 || n >= len(d.Panels) {
		c.failure(w, r, http.StatusNotFound, "There is no such panel.")
		return
	}
	l := d.Panels[n].withRange(values)
	prefix := fmt.Sprintf("panel-%d-", n)
	s, err := c.show(r.Context(), l, max(d.Refresh*9/10, fresh))
	var refused *refusal
	switch {
	case err == nil:
		c.render(w, "panel", c.viewOf(s, prefix))
	case errors.As(err, &refused):
		c.render(w, "panel", &answerView{Look: l, Refused: refused, Prefix: prefix})
	}
}
