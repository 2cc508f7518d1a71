package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/runlens/runlens/http/client"
	"github.com/runlens/runlens/http/client/report"
)

// explainTimeout bounds the explanation of a question, which a server answers within the time of a query.
const explainTimeout = time.Minute

// An overview is what /usage of an admin address says.
type overview struct {
	Since   time.Time `json:"since"`
	Keys    []summary `json:"keys"`
	Slowest []summary `json:"slowest"`
}

// A summary is what the questions of a group took together.
type summary struct {
	Group     []string `json:"group"` // values of the columns of its kind
	Questions uint64   `json:"questions"`
	Refused   uint64   `json:"refused"`
	Limited   uint64   `json:"limited"`
	RowsRead  uint64   `json:"rows_read"`
	P95Ms     *float64 `json:"p95_ms"`
	MaxMs     *float64 `json:"max_ms"`
}

// keyColumns and questionColumns name the values of a group of the keys, and of the slowest questions.
var (
	keyColumns      = []string{"organization_id", "key_id"}
	questionColumns = []string{"organization_id", "model", "metrics", "dimensions", "filters", "days", "timezone", "limit"}
)

// A usageView is what the operator's page shows of who asks what.
type usageView struct {
	Address string // the admin address that says so
	Refused string // why it does not; nothing else is there then
	Since   string
	Keys    []usageRow
	Slowest []usageRow
}

// A usageRow is a key, or a question of an organization.
type usageRow struct {
	Organization, What                         string
	Questions, Refused, Limited, RowsRead, P95 string
	Max                                        string
	Explain                                    string // where it is explained; empty for a key
}

// operatorUsage shows the usage of the first server that answers: servers of one store read the same log.
func (c *Console) operatorUsage(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), adminTimeout)
	defer cancel()
	var view *usageView
	for n, admin := range c.Admin {
		status, text, err := admin.get(ctx, "/usage")
		var o overview
		if err == nil && status == http.StatusOK && json.Unmarshal([]byte(text), &o) == nil {
			view = viewOfUsage(admin.Address, n, o)
			break
		}
		if err == nil && status == http.StatusUnauthorized {
			view = &usageView{Address: admin.Address, Refused: wantsToken}
		}
	}
	c.render(w, "operator-usage", view)
}

func viewOfUsage(address string, n int, o overview) *usageView {
	view := &usageView{Address: address, Since: o.Since.UTC().Format("15:04 UTC")}
	for _, s := range o.Keys {
		group := groupedBy(keyColumns, s)
		row := rowOfUsage(s, group)
		row.What = group.Get("key_id")
		view.Keys = append(view.Keys, row)
	}
	for _, s := range o.Slowest {
		group := groupedBy(questionColumns, s)
		row := rowOfUsage(s, group)
		row.What = shapeText(group)
		group.Set("admin", strconv.Itoa(n))
		row.Explain = "operator/explain?" + group.Encode()
		view.Slowest = append(view.Slowest, row)
	}
	return view
}

// groupedBy is the group of a summary by the names of its columns.
func groupedBy(columns []string, s summary) url.Values {
	group := url.Values{}
	for i, name := range columns {
		if i < len(s.Group) {
			group.Set(name, s.Group[i])
		}
	}
	return group
}

func rowOfUsage(s summary, group url.Values) usageRow {
	count := func(n uint64) string { return thousands(strconv.FormatUint(n, 10)) }
	took := func(ms *float64) string {
		if ms == nil {
			return "–"
		}
		return thousands(fmt.Sprintf("%.0f", *ms)) + " ms"
	}
	return usageRow{Organization: group.Get("organization_id"), Questions: count(s.Questions), Refused: count(s.Refused),
		Limited: count(s.Limited), RowsRead: count(s.RowsRead), P95: took(s.P95Ms), Max: took(s.MaxMs)}
}

// shapeText is a shape in plain words.
func shapeText(group url.Values) string {
	list := func(name string) string { return strings.NewReplacer(",", ", ", "_", " ").Replace(group.Get(name)) }
	text := list("metrics")
	if dimensions := list("dimensions"); dimensions != "" {
		text += " by " + dimensions
	}
	if filters := list("filters"); filters != "" {
		text += ", filtered: " + filters
	}
	return text + ", days: " + group.Get("days") + " in " + group.Get("timezone") + ", rows: up to " + group.Get("limit")
}

// An explanationView says how a server answers a question.
type explanationView struct {
	Organization, What string
	Start, End         string
	Unfiltered         bool // it was asked with filters, of which nobody keeps the values
	Text               string
	Refused            string // instead of Text
}

// operatorExplain has a server explain a question of a shape, over as many days up to today.
func (c *Console) operatorExplain(w http.ResponseWriter, r *http.Request) {
	group := r.URL.Query()
	n, err := strconv.Atoi(group.Get("admin"))
	days, wrong := strconv.Atoi(group.Get("days"))
	limit, bad := strconv.Atoi(group.Get("limit"))
	if err != nil || wrong != nil || bad != nil || n < 0 || n >= len(c.Admin) {
		c.failure(w, r, http.StatusNotFound, "There is no such question.")
		return
	}
	today := report.TodayIn(group.Get("timezone"), c.Now())
	q := client.Query{Model: group.Get("model"), Metrics: strings.Split(group.Get("metrics"), ","), Limit: limit,
		Range: client.Range{Start: today.AddDate(0, 0, 1-days).Format(time.DateOnly), End: today.Format(time.DateOnly),
			Timezone: group.Get("timezone")}}
	if dimensions := group.Get("dimensions"); dimensions != "" {
		q.Dimensions = strings.Split(dimensions, ",")
	}
	view := &explanationView{Organization: group.Get("organization_id"), What: shapeText(group), Start: q.Range.Start,
		End: q.Range.End, Unfiltered: group.Get("filters") != ""}
	body, err := json.Marshal(q)
	if err != nil {
		c.failure(w, r, http.StatusInternalServerError, "The question cannot be sent.")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), explainTimeout)
	defer cancel()
	status, text, err := c.Admin[n].send(ctx, http.MethodPost,
		"/explain?"+url.Values{"organization_id": {view.Organization}}.Encode(), body)
	switch {
	case err != nil:
		view.Refused = err.Error()
	case status == http.StatusUnauthorized:
		view.Refused = wantsToken
	case status != http.StatusOK:
		view.Refused = strings.TrimSpace(text)
	default:
		view.Text = text
	}
	c.render(w, "operator-explanation", view)
}
