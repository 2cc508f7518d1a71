package main

import (
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/runlens/runlens/cmd/internal/oracle"
)

// The strategies that a question can be made for. Which one answers depends on the store as well.
const (
	wantAggregates = "rollup_aggregates"
	wantRows       = "rollup_rows"
	wantBase       = "base"
	wantAny        = ""
)

var (
	runMetrics = []string{"run_count", "completed_run_count", "failed_run_count", "cancelled_run_count",
		"active_run_count",
		"run_success_rate", "unique_initiator_count"}
	sumsOfRuns   = runMetrics[:6]
	pairMetrics  = []string{"attributed_run_count", "initiated_run_count", "associated_run_count", "interacted_run_count"}
	stateMetrics = []string{"completed_attributed_run_count", "failed_attributed_run_count",
		"cancelled_attributed_run_count",
		"active_attributed_run_count"}
	activityMetrics    = slices.Concat(pairMetrics, []string{"interaction_count"}, stateMetrics)
	runDimensions      = []string{"agent_id", "user_identifier", "user_type", "day"}
	activityDimensions = []string{"agent_id", "user_identifier", "user_domain", "activity_type", "run_initiation_type",
		"source", "day"}

	wholeHourZones = []string{"UTC", "Europe/Stockholm", "America/New_York", "Asia/Tokyo", "America/Santiago",
		"Australia/Lord_Howe"}
	quarterZones = []string{"Asia/Kathmandu", "Asia/Kolkata", "America/St_Johns", "Pacific/Chatham"}
)

// A questioner draws questions whose answers the oracle knows.
type questioner struct {
	random *rand.Rand
	author *author
}

func some[T any](q *questioner, of []T, least, most int) []T {
	n := least + q.random.IntN(min(most, len(of))-least+1)
	var drawn []T
	for _, i := range q.random.Perm(len(of))[:n] {
		drawn = append(drawn, of[i])
	}
	return drawn
}

func oneOf[T any](q *questioner, of []T) T { return of[q.random.IntN(len(of))] }

// draw draws a question for a strategy.
func (q *questioner) draw(want, organization string, paged bool) question {
	drawn := question{Model: "agent_runs"}
	days := 1 + q.random.IntN(30)
	switch want {
	case wantAggregates:
		drawn.Metrics = some(q, sumsOfRuns, 1, 4)
		drawn.Dimensions = oneOf(q, [][]string{nil, {"day"}, {"user_type"}, {"day", "user_type"}, {"agent_id"},
			{"agent_id", "day"}})
		if q.random.IntN(3) == 0 {
			drawn.Model, drawn.Metrics = "agent_user_activity", []string{"interaction_count"}
			drawn.Dimensions = oneOf(q, [][]string{nil, {"day"}, {"agent_id"}, {"agent_id", "day"}})
		}
		days = 1 + q.random.IntN(366)
	case wantRows:
		drawn.Metrics = some(q, runMetrics, 1, 4)
		drawn.Dimensions = oneOf(q, [][]string{{"agent_id", "user_type"}, {"day", "agent_id", "user_type"},
			{"user_identifier"}, {"user_identifier", "day"}, {"agent_id", "user_identifier"}})
		switch q.random.IntN(4) {
		case 0:
			drawn.Model, drawn.Metrics = "agent_user_activity", []string{"interaction_count"}
			drawn.Dimensions = oneOf(q, [][]string{{"activity_type"}, {"activity_type", "day"}, {"activity_type", "agent_id"}})
		case 1:
			drawn.Metrics, drawn.Dimensions = []string{"unique_initiator_count"}, some(q, []string{"day", "agent_id"}, 0, 2)
		}
		days = 1 + q.random.IntN(14)
	case wantBase:
		drawn.Model, drawn.Metrics = "agent_user_activity", some(q, pairMetrics, 1, 4)
		if q.random.IntN(2) == 0 {
			drawn.Metrics = append(some(q, stateMetrics, 1, 3), some(q, pairMetrics, 0, 2)...)
		}
		drawn.Dimensions = some(q, activityDimensions, 0, 2)
		days = 1 + q.random.IntN(10)
	default:
		drawn.Metrics, drawn.Dimensions = some(q, runMetrics, 1, 7), some(q, runDimensions, 0, 3)
		if q.random.IntN(2) == 0 {
			drawn.Model = "agent_user_activity"
			drawn.Metrics, drawn.Dimensions = some(q, activityMetrics, 1, 9), some(q, activityDimensions, 0, 4)
		}
		if organization != mainOrganization {
			days = 1 + q.random.IntN(366)
		}
	}
	q.filter(&drawn, organization, want)
	q.span(&drawn, days)
	q.page(&drawn, paged)
	return drawn
}

// filter adds filters on what the strategy allows.
func (q *questioner) filter(drawn *question, organization, want string) {
	var on []string
	switch want {
	case wantAggregates:
		on = []string{"day"}
		for _, name := range []string{"agent_id", "user_type"} {
			if slices.Contains(drawn.Dimensions, name) {
				on = append(on, name)
			}
		}
	case wantRows:
		on = []string{"day", "agent_id"}
	default:
		on = runDimensions
		if drawn.Model != "agent_runs" {
			on = activityDimensions
		}
	}
	for range oneOf(q, []int{0, 0, 1, 1, 2}) {
		f := filter{Member: oneOf(q, on), Op: "in"}
		for range 1 + q.random.IntN(4) {
			f.Values = append(f.Values, q.value(f.Member, q.author.of(organization)))
		}
		if len(f.Values) == 1 {
			f.Op, f.Value, f.Values = "eq", f.Values[0], nil
		}
		drawn.Filters = append(drawn.Filters, f)
	}
}

func (q *questioner) value(member string, c *chronicle) string {
	pick := func(of []string) string { return oneOf(q, of) }
	switch member {
	case "agent_id":
		if place := q.random.IntN(len(c.agents)); q.random.IntN(2) == 0 {
			return strings.ToUpper(c.agents[place].String())
		}
		return "agent-" + string(rune('0'+q.random.IntN(6)))
	case "user_identifier":
		return " " + strings.ToUpper(pick(c.people[1:]))
	case "user_type":
		return pick(drawnTypes[:4])
	case "user_domain":
		return pick(drawnDomains)
	case "activity_type":
		return pick(drawnActivities)
	case "run_initiation_type":
		return pick(drawnInitiations)
	case "source":
		return pick(drawnSources)
	default:
		return q.author.today.AddDate(0, 0, -q.random.IntN(historyDays)).Format(time.DateOnly)
	}
}

// span sets a range of days within the history, or a little beyond it.
func (q *questioner) span(drawn *question, days int) {
	end := q.author.today.AddDate(0, 0, 3-q.random.IntN(historyDays))
	zones := wholeHourZones
	if !slices.Contains(drawn.Dimensions, "agent_id") && q.random.IntN(4) == 0 {
		zones = quarterZones
	}
	drawn.Range = dateRange{end.AddDate(0, 0, 1-days).Format(time.DateOnly), end.Format(time.DateOnly),
		oneOf(q, zones)}
	ofDay := func(f filter) bool { return f.Member == "day" }
	if i := slices.IndexFunc(drawn.Filters, ofDay); i >= 0 { // so that it selects something
		day := end.AddDate(0, 0, -q.random.IntN(days)).Format(time.DateOnly)
		if drawn.Filters[i].Op == "eq" {
			drawn.Filters[i].Value = day
		} else {
			drawn.Filters[i].Values[0] = day
		}
	}
}

// page sets an order and a limit: for pages that follow each other, or for a single one.
func (q *questioner) page(drawn *question, paged bool) {
	if len(drawn.Dimensions) == 0 {
		return
	}
	drawn.Limit = 1 + q.random.IntN(500)
	direction := func() string { return oneOf(q, []string{"asc", "desc"}) }
	switch {
	case paged:
		drawn.Limit = 1 + q.random.IntN(20)
		for _, name := range some(q, drawn.Dimensions, 0, len(drawn.Dimensions)) {
			drawn.Order = append(drawn.Order, orderTerm{name, direction()})
		}
	case q.random.IntN(2) == 0:
		drawn.Order = append(drawn.Order, orderTerm{drawn.Metrics[0], direction()})
	}
}

// asOracle is a question in the oracle's words.
func (q question) asOracle() oracle.Query {
	wanted := oracle.Query{Model: q.Model, Metrics: q.Metrics, Dimensions: q.Dimensions, Start: q.Range.Start,
		End: q.Range.End, Timezone: q.Range.Timezone}
	for _, f := range q.Filters {
		values := f.Values
		if f.Op == "eq" {
			values = []string{f.Value}
		}
		wanted.Filters = append(wanted.Filters, oracle.Filter{Member: f.Member, Values: values})
	}
	for _, term := range q.Order {
		wanted.Order = append(wanted.Order, oracle.Term{Member: term.Member, Descending: term.Direction == "desc"})
	}
	return wanted
}
