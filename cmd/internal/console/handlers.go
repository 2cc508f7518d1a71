package console

import (
	"errors"
	"net/http"
	"net/mail"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"

	"github.com/runlens/runlens/http/client"
	"github.com/runlens/runlens/http/client/report"
	"github.com/runlens/runlens/olap/cache"
	"github.com/runlens/runlens/olap/daterange"
)

// fresh is how old an answer of the first page may be: going back shows it at once, another metric is drawn without
// asking, and a page names its asOf.
const fresh = 30 * time.Second

// home leads to the first page.
func (c *Console) home(w http.ResponseWriter, r *http.Request) {
	address := "explore"
	if len(c.Dashboards) > 0 {
		address = dashboardAddress(c.Dashboards[0])
	}
	w.Header().Set("Location", address) // http.Redirect would make it absolute, without the session's path
	w.WriteHeader(http.StatusSeeOther)
}

// explore answers the whole page. To a browser it leaves the answer out, which the page then asks for: the controls
// are there at once. To htmx, which keeps the page until the new one is there, it gives both.
func (c *Console) explore(w http.ResponseWriter, r *http.Request) {
	l, err := c.parseLook(r.URL.Query())
	page := c.explorePage(l)
	page.Nav, page.First = c.nav("explore"), r.URL.RawQuery == ""
	if isFirst(r.URL.Query()) {
		page.Zone = r.URL.Query().Get("zone")
	}
	switch {
	case err != nil:
		page.Answer = &answerView{Refused: &refusal{line: err.Error()}}
	case r.Header.Get("HX-Request") == "true":
		if page.Answer = c.answerView(r, l); page.Answer == nil {
			return
		}
	}
	if r.Header.Get("HX-Request") == "true" {
		w.Header().Set("HX-Push-Url", l.address())
	}
	c.render(w, "explore.html", page)
}

// answerPart answers what a page that has just been opened asks for. Where the key sees too few days for the first
// page, the browser opens one about fewer; where it leaves out groups of too few people, or nothing was counted before
// today, one without a comparison.
func (c *Console) answerPart(w http.ResponseWriter, r *http.Request) {
	l, err := c.parseLook(r.URL.Query())
	page := c.explorePage(l)
	if err != nil {
		page.Answer = &answerView{Refused: &refusal{line: err.Error()}}
	} else {
		page.Answer = c.answerView(r, l)
	}
	if isFirst(r.URL.Query()) {
		for _, fewer := range []string{"last=30d", "last=7d", "today=true"} {
			if page.Answer == nil || page.Answer.Refused == nil || page.Answer.Refused.forbids != "range.start" {
				break
			}
			l.Compare, l.Weekdays = "", false
			l.setPeriod(fewer)
			page.Answer = c.answerView(r, l)
			w.Header().Set("HX-Redirect", l.address())
		}
		if a := page.Answer; a != nil && l.Compare != "" && (a.FewLeftOut || a.Empty != nil && a.Empty.OnlyToday) {
			l.Compare, l.Weekdays = "", false
			w.Header().Set("HX-Redirect", l.address())
		}
	}
	if page.Answer == nil {
		return // the browser has asked something else
	}
	w.Header().Set("HX-Replace-Url", l.address()) // the page may have been opened with less
	c.render(w, "answer", page)
}

// answerView asks and makes the view. It is nil when nobody waits for it any longer.
func (c *Console) answerView(r *http.Request, l look) *answerView {
	s, err := c.overview(r.Context(), l, fresh)
	var refused *refusal
	switch {
	case err == nil:
		return c.viewOf(s, "")
	case errors.As(err, &refused):
		return &answerView{Look: l, Refused: refused, Crumbs: l.crumbs(c)}
	}
	return nil
}

// values answers the most frequent values of a dimension, to choose a filter from.
func (c *Console) values(w http.ResponseWriter, r *http.Request) {
	l, err := c.parseLook(r.URL.Query())
	if err != nil {
		c.render(w, "options", nil)
		return
	}
	member := r.URL.Query().Get("filter-member")
	q := l.totals()
	q.Filter, q.Compare, q.Weekdays = nil, "", false
	q.Metrics, q.Dimensions = []string{c.model(l.Model).Metrics[0].Name}, []string{member}
	q.Order, q.Limit = []string{q.Metrics[0] + ":desc"}, suggested
	a, err := c.ask(r.Context(), q, time.Minute)
	if err != nil || member == "" {
		c.render(w, "options", nil) // a person can still type a value
		return
	}
	var options []option
	for _, row := range a.rows {
		if row[0].IsNull() {
			continue
		}
		o := option{Value: row[0].String()}
		if name := groupName(a.columns, row); name != o.Value {
			o.Label = name
		}
		options = append(options, o)
	}
	c.render(w, "options", options)
}

// suggested is how many values are offered for a filter.
const suggested = 100

// An option is a value that can be chosen, with the name that people know.
type option struct{ Value, Label string }

func (c *Console) zones(w http.ResponseWriter, _ *http.Request) {
	var options []option
	for _, zone := range daterange.Zones() {
		options = append(options, option{Value: zone})
	}
	c.render(w, "options", options)
}

// learn remembers the names of an answer's identifiers, and whose name each is: several may share one.
func (c *Console) learn(a *answer) {
	c.learning.Lock()
	defer c.learning.Unlock()
	for i, column := range a.columns {
		if i == 0 || column.Member != a.columns[i-1].Name || column.Name == column.Member || column.Numeric() {
			continue
		}
		for _, row := range a.rows {
			if row[i-1].IsNull() {
				continue
			}
			id, name := row[i-1].String(), row[i].String()
			key := keyOf(column.Member + "=" + id)
			if visible(name) {
				c.names.Put(everybody, key, name, len(name))
				shared := c.seenAs(column.Member, name)
				if !slices.Contains(shared, id) && len(shared) <= client.MaxFilterValues {
					shared = append(shared, id)
				}
				ids := report.FilterText("", shared...)
				c.names.Put(everybody, seenKey(column.Member, name), ids, len(ids))
			} else if _, known := c.names.Get(everybody, key); !known {
				c.names.Put(everybody, key, id, len(id))
			}
		}
	}
}

// longName is how many characters of a name are written in sentences.
const longName = 60

// name is the name of a dimension's value within a sentence, as far as it was seen. Marks in it that turn the direction
// of text turn nothing behind it.
func (c *Console) name(member, value string) string {
	name, ok := c.names.Get(everybody, keyOf(member+"="+value))
	if !ok {
		name = value
	}
	name = shorten(name, longName)
	if strings.ContainsFunc(name, func(r rune) bool { return unicode.Is(unicode.Bidi_Control, r) }) {
		return "\u2068" + name + "\u2069"
	}
	return name
}

// identifiers are the values that a typed text stands for: those of all who have it as a name, as far as they were
// seen, unless it was seen as an identifier, or has the form of one as theirs have.
func (c *Console) identifiers(member, typed string) []string {
	_, seen := c.names.Get(everybody, keyOf(member+"="+typed))
	ids := c.seenAs(member, typed)
	if seen || ids == nil || identifies(typed) && slices.ContainsFunc(ids, identifies) {
		return []string{typed}
	}
	return ids
}

// identifies reports whether a text has the form of what people and agents are known by: an email address, a phone
// number or a UUID.
func identifies(text string) bool {
	address, err := mail.ParseAddress(text)
	return err == nil && address.Address == text || phone.MatchString(text) || uuid.Validate(text) == nil
}

var phone = regexp.MustCompile(`^\+[0-9]{2,15}$`)

// seenAs are the identifiers that were seen with a name, up to one more than a filter takes.
func (c *Console) seenAs(member, name string) []string {
	text, ok := c.names.Get(everybody, seenKey(member, name))
	if !ok {
		return nil
	}
	f, _ := report.ParseFilter(text) // one of our own
	return f.Values
}

func seenKey(member, name string) cache.Key {
	return keyOf("seen as " + member + "=" + strings.ToLower(name))
}

// signIn says how to open the console. again is a link to the page itself; empty for none.
func (c *Console) signIn(w http.ResponseWriter, again string) {
	w.WriteHeader(http.StatusUnauthorized)
	c.render(w, "signin.html", page{Title: "Open the console", Here: again})
}

func (c *Console) failure(w http.ResponseWriter, r *http.Request, status int, text string) {
	w.WriteHeader(status)
	up := strings.Repeat("../", max(strings.Count(r.URL.Path, "/")-1, 0))
	c.render(w, "failure.html", page{Title: text, Here: up + "explore"})
}
