package oracle

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// A Query is a query request (spec 2.10) that is known to be valid.
type Query struct {
	Model               string
	Metrics, Dimensions []string
	Filters             []Filter
	Start, End          string // days, both inclusive
	Timezone            string
	Order               []Term
	Key                 Key // of who asks
}

// A Filter is spec 2.11's; eq is in with one value.
type Filter struct {
	Member string
	Values []string
}

// A Term is spec 2.13's.
type Term struct {
	Member     string
	Descending bool
}

// A row is a counted record. Its dimensions are numbers of texts, or of days since 1970.
type row struct {
	agent, identifier, name, initiatorType    int32
	domain, activity, initiation, source, day int32
	run                                       int32
	status                                    string
}

// most is the number of dimensions in a key (spec section 8).
const most = 8

// A dimension is how its value is read from a row.
type dimension func(*row) int32

var dimensions = map[string]dimension{
	"agent_id":            func(r *row) int32 { return r.agent },
	"user_identifier":     func(r *row) int32 { return r.identifier },
	"user_type":           func(r *row) int32 { return r.initiatorType },
	"user_domain":         func(r *row) int32 { return r.domain },
	"activity_type":       func(r *row) int32 { return r.activity },
	"run_initiation_type": func(r *row) int32 { return r.initiation },
	"source":              func(r *row) int32 { return r.source },
	"day":                 func(r *row) int32 { return r.day },
}

// Answer returns all rows of the answer in order, without a limit. Values are string, float64 or nil.
func (o *Oracle) Answer(organization string, q Query) ([][]any, error) {
	org := o.of(organization)
	zone, err := time.LoadLocation(q.Timezone)
	if err != nil {
		return nil, err
	}
	start, err := dayNumber(q.Start)
	if err != nil {
		return nil, err
	}
	end, err := dayNumber(q.End)
	if err != nil {
		return nil, err
	}
	filters := append([]func(*row) bool{org.sees(q.Key)}, org.filters(q.Filters)...)
	keys := make([]dimension, len(q.Dimensions))
	for i, name := range q.Dimensions {
		keys[i] = dimensions[name]
	}
	groups := map[[most]int32]*group{}
	if len(keys) == 0 {
		groups[[most]int32{}] = newGroup(q)
	}
	initiated, interacted := org.texts.known("initiated"), org.texts.known("interacted")
	automated := org.texts.known("automated")
	org.walk(q.Model == "agent_runs", zone, start, end, func(r *row) {
		for _, keeps := range filters {
			if !keeps(r) {
				return
			}
		}
		var key [most]int32
		for i, value := range keys {
			key[i] = value(r)
		}
		g := groups[key]
		if g == nil {
			g = newGroup(q)
			groups[key] = g
		}
		g.add(org.texts, r, initiated, interacted)
		if q.Key.MinPeople > 0 && r.identifier != null && (q.Model != "agent_runs" || r.initiatorType != automated) {
			g.people[r.identifier] = struct{}{}
		}
	})
	answers := make([][]any, 0, len(groups))
	for key, g := range groups {
		if shown := org.shown(q, key, g); shown != nil {
			answers = append(answers, shown)
		}
	}
	sortRows(answers, q)
	return answers, nil
}

// walk visits the records of a model whose local day is in the range.
func (org *organization) walk(ofRuns bool, zone *time.Location, start, end int64, visit func(*row)) {
	days := org.attributionDays
	if ofRuns {
		days = org.runDays
	}
	// No clock is further from UTC than a day.
	for day := start - 1; day <= end+1; day++ {
		local := localDays(zone, day)
		for _, place := range days[day] {
			var r row
			var at int64
			if ofRuns {
				run := &org.runs[place]
				if !run.known || !run.counts {
					continue
				}
				at = run.created
				r = row{
					agent:         run.agent,
					identifier:    run.identifier,
					name:          run.name,
					initiatorType: run.initiatorType,
					status:        run.status,
				}
			} else {
				a := &org.attributions[place]
				if a.gone {
					continue
				}
				at = a.occurred
				r = row{agent: a.agent, identifier: a.identifier, name: a.name, domain: a.domain, activity: a.activity,
					initiation: a.initiation, source: a.source, run: a.run, status: org.runs[a.run].status}
			}
			if on := local(at); on >= start && on <= end {
				r.day = int32(on)
				visit(&r)
			}
		}
	}
}

// localDays returns the local day of the instants of a UTC day. Where the clock does not change on it, that is a sum.
func localDays(zone *time.Location, day int64) func(millis int64) int64 {
	_, first := time.UnixMilli(day * dayMillis).In(zone).Zone()
	_, last := time.UnixMilli((day + 1) * dayMillis).In(zone).Zone()
	if first == last {
		return func(millis int64) int64 { return dayOf(millis + int64(first)*1000) }
	}
	return func(millis int64) int64 {
		_, offset := time.UnixMilli(millis).In(zone).Zone()
		return dayOf(millis + int64(offset)*1000)
	}
}

func dayNumber(text string) (int64, error) {
	at, err := time.Parse(time.DateOnly, text)
	return dayOf(at.UnixMilli()), err
}

// filters are conditions, all of which a row has to satisfy.
func (org *organization) filters(all []Filter) []func(*row) bool {
	var conditions []func(*row) bool
	for _, f := range all {
		wanted := map[int32]bool{}
		for _, text := range f.Values {
			switch f.Member {
			case "day":
				if day, err := dayNumber(text); err == nil {
					wanted[int32(day)] = true
				}
			case "agent_id":
				if id, err := uuid.Parse(text); err == nil && len(text) == 36 {
					wanted[org.texts.known(id.String())] = true
				}
				wanted[org.holder(text)] = true
			case "user_identifier":
				if text = strings.TrimSpace(text); strings.Contains(text, "@") {
					text = strings.ToLower(text)
				}
				wanted[org.texts.known(text)] = true
			default:
				wanted[org.texts.known(text)] = true
			}
		}
		value := dimensions[f.Member]
		conditions = append(conditions, func(r *row) bool { return wanted[value(r)] })
	}
	return conditions
}

// holder is the agent that has a slug: the one that is not deleted, otherwise the last that was (contract 4.6).
func (org *organization) holder(slug string) int32 {
	var holder *Agent
	for _, a := range org.agents {
		if a.Slug == nil || *a.Slug != slug {
			continue
		}
		if holder == nil || holder.DeletedAt != nil && (a.DeletedAt == nil || a.DeletedAt.After(*holder.DeletedAt)) {
			holder = &a
		}
	}
	if holder == nil {
		return org.texts.known("")
	}
	return org.texts.known(holder.ID.String())
}

// present makes a group a row of the answer.
func (org *organization) present(q Query, key [most]int32, g *group) []any {
	var values []any
	for i, name := range q.Dimensions {
		if name == "day" {
			values = append(values, time.UnixMilli(int64(key[i])*dayMillis).UTC().Format(time.DateOnly))
			continue
		}
		values = append(values, org.texts.value(key[i]))
		switch {
		case name == "agent_id":
			var shown any
			if a, known := org.agents[uuid.MustParse(org.texts.all[key[i]])]; known {
				shown = a.Name
			}
			values = append(values, shown)
		case name == "user_identifier" && key[i] == null: // nobody's name (contract 4.15)
			values = append(values, nil)
		case name == "user_identifier":
			values = append(values, org.texts.value(g.name))
		}
	}
	for _, name := range q.Metrics {
		values = append(values, g.measure(name))
	}
	return values
}

// sortRows is contract 4.2: by the terms, then by the other dimensions; null is last in both directions.
func sortRows(rows [][]any, q Query) {
	columns, next := map[string]int{}, 0
	for _, name := range q.Dimensions {
		columns[name] = next
		if next++; name == "agent_id" || name == "user_identifier" {
			next++ // the companion
		}
	}
	for _, name := range q.Metrics {
		columns[name] = next
		next++
	}
	terms := slices.Clone(q.Order)
	for _, name := range q.Dimensions {
		terms = append(terms, Term{Member: name})
	}
	slices.SortFunc(rows, func(a, b []any) int {
		for _, term := range terms {
			if order := compare(a[columns[term.Member]], b[columns[term.Member]], term.Descending); order != 0 {
				return order
			}
		}
		return 0
	})
}

func compare(a, b any, descending bool) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	order := 0
	if text, is := a.(string); is {
		order = strings.Compare(text, b.(string))
	} else {
		order = cmp.Compare(a.(float64), b.(float64))
	}
	if descending {
		return -order
	}
	return order
}
