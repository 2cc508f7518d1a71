package console

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/runlens/runlens/http/client/report"
)

// A boardView is what the page of a dashboard shows.
type boardView struct {
	Title   string
	Refresh int    // seconds; 0 for never
	About   string // the days and the timezone of all panels; empty where they have several
	Panels  []panelView
	Says    string // stands for what the page says of its panels
	Form    []hidden
	Shared  bool      // by a link: the period cannot be changed
	Link    *linkView // makes such a link; nil for a console without them
}

type panelView struct {
	Title, ID, Address, Explore string
	About                       string // its days and timezone, where those of the others differ
	Delay                       int    // milliseconds until it is asked
}

// daysAndZone is what a panel is about.
func daysAndZone(span report.Span, zone string) string { return datesIn(span.String()) + " in " + zone }

// inCommon is the text that all have, and none of their own; else the text of each.
func inCommon(texts []string) (all string, each []string) {
	if len(slices.Compact(slices.Clone(texts))) == 1 {
		return texts[0], make([]string, len(texts))
	}
	return "", texts
}

// view is what the page of a dashboard shows, with the panels at these looks.
func (d *dashboard) view(looks []look, now time.Time) *boardView {
	v := &boardView{Title: d.Title, Refresh: int(d.Refresh.Seconds())}
	abouts := make([]string, len(looks))
	for i, l := range looks {
		span, _ := l.Span(now) // the answer says what is wrong with it
		abouts[i] = daysAndZone(span, l.Timezone)
	}
	v.About, abouts = inCommon(abouts)
	for i, one := range d.Panels {
		v.Panels = append(v.Panels, panelView{Title: one.heading(), ID: fmt.Sprintf("panel-%d", i), About: abouts[i],
			Delay: d.delay(i)})
	}
	said := fmt.Sprintf("%+v", v)
	for _, l := range looks {
		said += l.address() + "\n"
	}
	sum := sha256.Sum256([]byte(said))
	v.Says = hex.EncodeToString(sum[:])
	return v
}

// saidElse has the browser open the page again, and reports so, where the page says something else of its panels than
// would be shown in them: their file was changed, or it is another day. looks are those of all panels. d is nil for a
// file that is no dashboard any longer.
func (d *dashboard) saidElse(w http.ResponseWriter, r *http.Request, looks []look, now time.Time) bool {
	said := r.Header.Get("Runlens-Page") // as the page's template has it
	if said == "" || d != nil && d.view(looks, now).Says == said {
		return false
	}
	w.Header().Set("HX-Refresh", "true")
	return true
}

// looks are those of all panels over the period that the page has chosen.
func (d *dashboard) looks(values url.Values) (looks []look) {
	for _, one := range d.Panels {
		looks = append(looks, one.withRange(values))
	}
	return looks
}

// find is a dashboard that the console offers; others are files that a page must not name. The error is a *fault where
// the file has one.
func (c *Console) find(file string) (*dashboard, error) {
	all, faults := c.dashboards()
	for _, d := range all {
		if d.file == file {
			return d, nil
		}
	}
	for _, f := range faults {
		if f.file == file {
			return nil, f
		}
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
	var wrong *fault
	switch {
	case errors.As(err, &wrong):
		c.faulty(w, wrong)
		return
	case err != nil:
		c.failure(w, r, http.StatusNotFound, err.Error())
		return
	}
	looks := d.looks(values)
	first := looks[0]
	p := page{Title: d.Title, Nav: c.nav(dashboardAddress(d.file)), Look: first, Periods: c.periodChoices(first)}
	p.Span, _ = first.Span(c.Now())
	p.Board = d.view(looks, c.Now())
	p.Board.Form = []hidden{{"file", d.file}}
	if c.Share != nil {
		p.Board.Link = newLinkView(d.file)
	}
	for i, l := range looks {
		address := url.Values{"file": {d.file}, "panel": {fmt.Sprint(i)}}
		for _, name := range []string{"period", "start", "end", "timezone"} {
			if values.Has(name) {
				address.Set(name, values.Get(name))
			}
		}
		p.Board.Panels[i].Address, p.Board.Panels[i].Explore = "panel?"+address.Encode(), l.address()
	}
	c.render(w, "dashboard.html", p)
}

// panel answers one panel. Pages that show the same dashboard share the answers.
func (c *Console) panel(w http.ResponseWriter, r *http.Request) {
	values := r.URL.Query()
	d, err := c.find(values.Get("file"))
	var looks []look
	if err == nil {
		looks = d.looks(values)
	}
	if d.saidElse(w, r, looks, c.Now()) {
		return
	}
	var n int
	if err == nil {
		_, err = fmt.Sscan(values.Get("panel"), &n)
	}
	if err != nil || n < 0 || n >= len(d.Panels) {
		c.failure(w, r, http.StatusNotFound, "There is no such panel.")
		return
	}
	if v := c.panelView(r.Context(), d, n, looks[n]); v != nil {
		c.render(w, "panel", v)
	}
}

// panelView answers a panel. It is nil when nobody waits for it any longer.
func (c *Console) panelView(ctx context.Context, d *dashboard, n int, l look) *answerView {
	prefix := fmt.Sprintf("panel-%d-", n)
	s, err := c.show(ctx, l, max(d.Refresh*9/10, fresh))
	var refused *refusal
	switch {
	case err == nil:
		return c.viewOf(s, prefix)
	case errors.As(err, &refused):
		return &answerView{Look: l, Refused: refused, Prefix: prefix}
	}
	return nil
}

// delay is after how many milliseconds a panel is asked again first: one after another, all over the interval.
func (d *dashboard) delay(n int) int { return int(d.Refresh.Milliseconds()) * n / len(d.Panels) }

// alone is a view that leads nowhere, for who has no console.
func (v *answerView) alone() *answerView {
	for n := range v.Bars {
		for m := range v.Bars[n].Bars {
			v.Bars[n].Bars[m].Href = ""
		}
	}
	if v.Empty != nil {
		v.Empty.Links, v.Empty.Hint = nil, false
	}
	if v.Offer != nil {
		v.Offer.Links = nil
	}
	return v
}

// A faultView is what the page of a dashboard with a fault shows.
type faultView struct {
	Title, File, Text string
	Line              int // 0 for none
	Lines             []faultLine
}

type faultLine struct {
	Number int
	Text   string
	Wrong  bool
}

// shownLines before and after the one with the fault are shown.
const shownLines = 3

// faulty shows what is wrong with a dashboard's file, and where.
func (c *Console) faulty(w http.ResponseWriter, f *fault) {
	v := &faultView{Title: f.title(), File: f.file, Text: f.text, Line: f.line}
	content, _ := os.ReadFile(f.file) // a file that cannot be read has no lines to show
	for i, line := range strings.Split(string(content), "\n") {
		if n := i + 1; f.line > 0 && n >= f.line-shownLines && n <= f.line+shownLines {
			v.Lines = append(v.Lines, faultLine{n, shorten(strings.TrimRight(line, "\r"), 200), n == f.line})
		}
	}
	w.WriteHeader(http.StatusUnprocessableEntity)
	c.render(w, "fault.html", page{Title: v.Title, Nav: c.nav(dashboardAddress(f.file)), Fault: v})
}
