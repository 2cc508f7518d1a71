package main

import (
	"encoding/json"
	"slices"
	"time"
)

const (
	runsModel     = "agent_runs"
	activityModel = "agent_user_activity"

	// zone is where the questions' days begin. It has summer time, so that days are not all alike.
	zone = "Europe/Stockholm"

	yearDays, monthDays = 366, 30
	firstPage, fullPage = 100, 500
)

// A question is one request, and how fast it should be answered: the greatest ratio of our median to
// the naive reference's.
type question struct {
	name       string
	model      string
	metrics    []string
	dimensions []string
	agent      string // the UUID of a filter; empty for none
	days       int    // the last ones of the data
	limit      int
	atMost     float64
}

var (
	additive = []string{
		"run_count",
		"completed_run_count",
		"failed_run_count",
		"cancelled_run_count",
		"active_run_count",
	}
	pairs       = []string{"attributed_run_count", "initiated_run_count", "associated_run_count", "interacted_run_count"}
	statusPairs = []string{
		"completed_attributed_run_count",
		"failed_attributed_run_count",
		"cancelled_attributed_run_count",
		"active_attributed_run_count",
	}
	unique       = []string{"unique_initiator_count"}
	interactions = []string{"interaction_count"}
)

// questions are those of the large organization. agent is an agent with many runs.
func questions(agent string) []question {
	return []question{
		{"additive, totals", runsModel, additive, nil, "", yearDays, firstPage, 0.10},
		{"additive, by day", runsModel, additive, []string{"day"}, "", yearDays, fullPage, 0.10},
		{"additive, by agent_id", runsModel, additive, []string{"agent_id"}, "", yearDays, firstPage, 0.20},
		{"additive, by user_type", runsModel, additive, []string{"user_type"}, "", yearDays, firstPage, 0.20},
		{"additive, by day and agent_id", runsModel, additive, []string{"day", "agent_id"}, "", yearDays, fullPage, 0.20},
		{"additive, of one agent_id", runsModel, additive, nil, agent, yearDays, firstPage, 0.20},
		{"additive, by user_identifier", runsModel, additive, []string{"user_identifier"}, "", yearDays, firstPage, 0.60},
		{"unique initiators, totals", runsModel, unique, nil, "", monthDays, firstPage, 0.50},
		{"unique initiators, totals", runsModel, unique, nil, "", yearDays, firstPage, 0.50},
		{"unique initiators, by day", runsModel, unique, []string{"day"}, "", yearDays, fullPage, 0.50},
		{"pairs, totals", activityModel, pairs, nil, "", monthDays, firstPage, 0.30},
		{"pairs, totals", activityModel, pairs, nil, "", yearDays, firstPage, 0.30},
		{"pairs and statuses, totals", activityModel, slices.Concat(pairs, statusPairs), nil, "", monthDays, firstPage, 0.30},
		{"pairs and statuses, totals", activityModel, slices.Concat(pairs, statusPairs), nil, "", yearDays, firstPage, 0.30},
		{"statuses, by agent_id", activityModel, statusPairs, []string{"agent_id"}, "", monthDays, firstPage, 0.20},
		{"interactions, by day", activityModel, interactions, []string{"day"}, "", yearDays, fullPage, 0.10},
	}
}

// monthly are the questions over 30 days, those of a small organization.
func monthly(all []question) []question {
	var found []question
	for _, q := range all {
		q.days = monthDays
		same := func(other question) bool {
			return other.name == q.name
		}
		if !slices.ContainsFunc(found, same) {
			found = append(found, q)
		}
	}
	return found
}

func (q question) needsRunStatus() bool {
	return slices.ContainsFunc(q.metrics, func(m string) bool { return slices.Contains(statusPairs, m) })
}

// title names the question in the report.
func (q question) title() string {
	if q.days == yearDays {
		return q.name + ", 366 days"
	}
	return q.name + ", 30 days"
}

// A window is a range of local days.
type window struct{ start, end, behindEnd string }

// lastDays is the range that ends with the day of the newest data.
func (w world) lastDays(days int) window {
	location, err := time.LoadLocation(zone)
	if err != nil {
		panic(err) // every Go installation and every tz database has it
	}
	end := w.until.In(location)
	day := func(offset int) string {
		return time.Date(end.Year(), end.Month(), end.Day()+offset, 12, 0, 0, 0, location).Format(time.DateOnly)
	}
	return window{day(1 - days), day(0), day(1)}
}

// body is the request.
func (q question) body(w window) []byte {
	type filter struct {
		Member string `json:"member"`
		Op     string `json:"op"`
		Value  string `json:"value"`
	}
	request := struct {
		Model      string            `json:"model"`
		Metrics    []string          `json:"metrics"`
		Dimensions []string          `json:"dimensions,omitempty"`
		Filters    []filter          `json:"filters,omitempty"`
		Range      map[string]string `json:"range"`
		Limit      int               `json:"limit"`
	}{q.model, q.metrics, q.dimensions, nil, map[string]string{"start": w.start, "end": w.end, "timezone": zone}, q.limit}
	if q.agent != "" {
		request.Filters = []filter{{"agent_id", "eq", q.agent}}
	}
	body, err := json.Marshal(request)
	if err != nil {
		panic(err) // nothing in it can fail
	}
	return body
}
