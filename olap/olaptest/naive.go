package olaptest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// A Query is a query request as its JSON has it (spec 2.10), trusted to be valid.
type Query struct {
	Model      string   `json:"model"`
	Metrics    []string `json:"metrics"`
	Dimensions []string `json:"dimensions,omitempty"`
	Filters    []Filter `json:"filters,omitempty"`
	Range      Range    `json:"range"`
	Order      []Term   `json:"order,omitempty"`
	Limit      int      `json:"limit,omitempty"`
	Cursor     string   `json:"cursor,omitempty"`
}

// A Filter is an equality or membership filter (spec 2.11).
type Filter struct {
	Member string   `json:"member"`
	Op     string   `json:"op"`
	Value  string   `json:"value,omitempty"`
	Values []string `json:"values,omitempty"`
}

// A Range is spec 2.12's.
type Range struct {
	Start    string `json:"start"`
	End      string `json:"end"`
	Timezone string `json:"timezone"`
}

// A Term is spec 2.13's.
type Term struct {
	Member    string `json:"member"`
	Direction string `json:"direction"`
}

// A row is one counted record with its dimensions as text, nil for null.
type row struct {
	dimensions map[string]*string
	name       *string // the display name recorded with it
	status     string  // of the run; empty while the run is not copied
	pair       string
	id         uuid.UUID
	activity   string
}

// Evaluate answers a query over records by the plainest reading of the spec: all rows in order,
// without a limit. Values are string, float64 or nil.
func Evaluate(records Records, organization string, q Query) [][]any {
	return Key{}.Evaluate(records, organization, q)
}

// Evaluate is what a key is answered: the rows that it does not see are taken away before anything else is done.
func (k Key) Evaluate(records Records, organization string, q Query) [][]any {
	agents := newestAgents(records, organization)
	var selected []row
	for _, r := range rowsOf(records, organization, q) {
		if k.sees(r) && matches(r, q, agents) {
			selected = append(selected, r)
		}
	}
	groups := map[string][]row{}
	for _, r := range selected {
		var key strings.Builder
		for _, d := range q.Dimensions {
			if value := r.dimensions[d]; value == nil {
				key.WriteString("null;")
			} else {
				fmt.Fprintf(&key, "%q;", *value)
			}
		}
		groups[key.String()] = append(groups[key.String()], r)
	}
	if len(q.Dimensions) == 0 && len(groups) == 0 {
		groups[""] = nil
	}
	var answers [][]any
	for _, group := range groups {
		switch {
		case k.shows(group):
			answers = append(answers, answer(group, q, agents))
		case len(q.Dimensions) == 0:
			answers = append(answers, make([]any, len(q.Metrics)))
		}
	}
	slices.SortFunc(answers, func(a, b []any) int { return compareRows(a, b, q) })
	return answers
}

func rowsOf(records Records, organization string, q Query) []row {
	zone, err := time.LoadLocation(q.Range.Timezone)
	if err != nil {
		panic(err)
	}
	runs := newestRuns(records, organization)
	var rows []row
	add := func(r row, clock time.Time) {
		day := clock.In(zone).Format(time.DateOnly)
		if day >= q.Range.Start && day <= q.Range.End {
			r.dimensions["day"] = &day
			rows = append(rows, r)
		}
	}
	if q.Model == "agent_runs" {
		for _, r := range runs {
			if r.Kind == "agent" {
				agent := r.AgentID.String()
				add(row{
					dimensions: map[string]*string{"agent_id": &agent, "user_identifier": r.Identifier, "user_type": r.Type},
					name:       r.Name, status: r.Status, id: r.ID,
				}, r.CreatedAt)
			}
		}
		return rows
	}
	seen := map[uuid.UUID]bool{} // the copy stored first counts, with its clock
	for _, a := range records.Attributions {
		if a.Organization != organization || seen[a.ID] {
			continue
		}
		seen[a.ID] = true
		agent := a.AgentID.String()
		var domain *string
		if _, after, ok := strings.Cut(a.Identifier, "@"); ok {
			domain = &after
		}
		add(row{
			dimensions: map[string]*string{
				"agent_id": &agent, "user_identifier": &a.Identifier, "user_domain": domain,
				"activity_type": &a.Activity, "run_initiation_type": &a.InitiationType, "source": &a.Source,
			},
			name: a.Name, status: runs[a.RunID].Status, pair: a.Identifier + " " + a.RunID.String(), id: a.ID,
			activity: a.Activity,
		}, a.OccurredAt)
	}
	return rows
}

// newestRuns are the newest versions. Between versions of one updated_at the status decides, then the clock
// (schema.SupersededRuns); what else may differ between them is not drawn.
func newestRuns(records Records, organization string) map[uuid.UUID]Run {
	newest := map[uuid.UUID]Run{}
	newer := func(r, old Run) bool {
		return cmp.Or(r.UpdatedAt.Compare(old.UpdatedAt), slices.Index(statuses, r.Status)-slices.Index(statuses, old.Status),
			r.CreatedAt.Compare(old.CreatedAt)) > 0
	}
	for _, r := range records.Runs {
		if old, ok := newest[r.ID]; r.Organization == organization && (!ok || newer(r, old)) {
			newest[r.ID] = r
		}
	}
	return newest
}

func newestAgents(records Records, organization string) map[string]Agent {
	newest := map[string]Agent{}
	for _, a := range records.Agents {
		if old, ok := newest[a.ID.String()]; a.Organization == organization && (!ok || a.UpdatedAt.After(old.UpdatedAt)) {
			newest[a.ID.String()] = a
		}
	}
	return newest
}

func matches(r row, q Query, agents map[string]Agent) bool {
	for _, f := range q.Filters {
		values := f.Values
		if f.Op == "eq" {
			values = []string{f.Value}
		}
		actual := r.dimensions[f.Member]
		if actual == nil ||
			!slices.ContainsFunc(values, func(wanted string) bool { return equals(f.Member, *actual, wanted, agents) }) {
			return false
		}
	}
	return true
}

func equals(member, actual, wanted string, agents map[string]Agent) bool {
	switch member {
	case "agent_id":
		return strings.EqualFold(actual, wanted) || slugHolder(wanted, agents) == actual
	case "user_identifier":
		wanted = strings.TrimSpace(wanted)
		if strings.Contains(wanted, "@") {
			wanted = strings.ToLower(wanted)
		}
	}
	return actual == wanted
}

// slugHolder is contract 4.6: an agent that is not deleted alone, otherwise the deleted one (the last to be deleted).
func slugHolder(slug string, agents map[string]Agent) string {
	var owner *Agent
	for _, a := range agents {
		if a.Slug == nil || *a.Slug != slug {
			continue
		}
		if owner == nil || owner.DeletedAt != nil && (a.DeletedAt == nil || a.DeletedAt.After(*owner.DeletedAt)) {
			owner = &a
		}
	}
	if owner == nil {
		return ""
	}
	return owner.ID.String()
}

func answer(group []row, q Query, agents map[string]Agent) []any {
	var values []any
	for _, d := range q.Dimensions {
		key := group[0].dimensions[d]
		values = append(values, optional(key))
		switch d {
		case "agent_id":
			if agent, ok := agents[*key]; ok {
				values = append(values, agent.Name)
			} else {
				values = append(values, nil)
			}
		case "user_identifier":
			var greatest *string
			for _, r := range group {
				if key != nil && r.name != nil && (greatest == nil || *r.name > *greatest) {
					greatest = r.name
				}
			}
			values = append(values, optional(greatest))
		}
	}
	for _, m := range q.Metrics {
		values = append(values, measure(m, group))
	}
	return values
}

func optional(s *string) any {
	if s == nil {
		return nil
	}
	return *s
}

// compareRows is contract 4.2: the terms, then the remaining dimensions; null last in both directions.
func compareRows(a, b []any, q Query) int {
	columns := map[string]int{}
	position := 0
	for _, d := range q.Dimensions {
		columns[d] = position
		position++
		if d == "agent_id" || d == "user_identifier" {
			position++
		}
	}
	for _, m := range q.Metrics {
		columns[m] = position
		position++
	}
	terms := slices.Clone(q.Order)
	for _, d := range q.Dimensions {
		terms = append(terms, Term{Member: d, Direction: "asc"})
	}
	for _, term := range terms {
		x, y := a[columns[term.Member]], b[columns[term.Member]]
		if x == nil || y == nil {
			if x == nil && y == nil {
				continue
			}
			if x == nil {
				return 1
			}
			return -1
		}
		order := 0
		if text, ok := x.(string); ok {
			order = strings.Compare(text, y.(string))
		} else {
			order = cmp.Compare(x.(float64), y.(float64))
		}
		if term.Direction == "desc" {
			order = -order
		}
		if order != 0 {
			return order
		}
	}
	return 0
}
