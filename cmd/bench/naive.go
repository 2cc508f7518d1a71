package main

import (
	"fmt"
	"strings"

	"github.com/runlens/runlens/schema"
)

// naiveTables are what an expert would create first: plain typed columns, and the newest version of a record wins.
var naiveTables = []string{
	`CREATE TABLE naive_agents
(
    organization_id LowCardinality(String),
    agent_id        UUID,
    name            String,
    slug            Nullable(String),
    deleted_at      Nullable(DateTime64(3, 'UTC')),
    updated_at      DateTime64(3, 'UTC')
)
ENGINE = ReplacingMergeTree(updated_at)
ORDER BY (organization_id, agent_id)`,

	`CREATE TABLE naive_runs
(
    organization_id      LowCardinality(String),
    run_id               UUID,
    created_at           DateTime64(3, 'UTC'),
    agent_id             UUID,
    kind                 LowCardinality(String),
    parent_run_id        Nullable(UUID),
    status               LowCardinality(String),
    initiator_identifier Nullable(String),
    initiator_name       Nullable(String),
    initiator_type       LowCardinality(Nullable(String)),
    updated_at           DateTime64(3, 'UTC')
)
ENGINE = ReplacingMergeTree(updated_at)
PARTITION BY toYYYYMM(created_at)
ORDER BY (organization_id, created_at, run_id)`,

	`CREATE TABLE naive_attributions
(
    organization_id     LowCardinality(String),
    attribution_id      UUID,
    run_id              UUID,
    agent_id            UUID,
    user_identifier     String,
    user_name           Nullable(String),
    activity_type       LowCardinality(String),
    run_initiation_type LowCardinality(String),
    source              LowCardinality(String),
    occurred_at         DateTime64(3, 'UTC')
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(occurred_at)
ORDER BY (organization_id, occurred_at, attribution_id)`,
}

const (
	activeStatuses = "('PENDING', 'RUNNING', 'WAITING_FOR_SLOT', 'CANCELLING', 'AWAITING_REPLY', 'SLEEPING', " +
		"'PAUSING', 'PAUSED')"
	pair = "uniqExactIf((user_identifier, run_id), "
)

// naiveMetrics are the metrics as an expert would write them first, over a row of naive_runs, or of
// naive_attributions with the run's status.
var naiveMetrics = map[string]string{
	"run_count":              "count()",
	"completed_run_count":    "countIf(status = 'COMPLETED')",
	"failed_run_count":       "countIf(status = 'FAILED')",
	"cancelled_run_count":    "countIf(status = 'CANCELLED')",
	"active_run_count":       "countIf(status IN " + activeStatuses + ")",
	"unique_initiator_count": "uniqExact(initiator_identifier)",

	"attributed_run_count":           "uniqExact((user_identifier, run_id))",
	"initiated_run_count":            pair + "activity_type = 'initiated')",
	"associated_run_count":           "uniqExact((user_identifier, run_id)) - " + pair + "activity_type = 'initiated')",
	"interacted_run_count":           pair + "activity_type = 'interacted')",
	"interaction_count":              "countIf(activity_type = 'interacted')",
	"completed_attributed_run_count": pair + "status = 'COMPLETED')",
	"failed_attributed_run_count":    pair + "status = 'FAILED')",
	"cancelled_attributed_run_count": pair + "status = 'CANCELLED')",
	"active_attributed_run_count":    pair + "status IN " + activeStatuses + ")",
}

// naive is the statement that answers the question without our tables and our compiler.
func (q question) naive(organization schema.OrganizationID, w window) string {
	clock, table, identifier, name := "created_at", "naive_runs", "initiator_identifier", "initiator_name"
	if q.model == activityModel {
		clock, table, identifier, name = "occurred_at", "naive_attributions", "user_identifier", "user_name"
	}
	ofOrganization := fmt.Sprintf("organization_id = '%s'", organization)

	from := table + " FINAL"
	where := []string{ofOrganization,
		fmt.Sprintf("%s >= toDateTime64('%s 00:00:00', 3, '%s')", clock, w.start, zone),
		fmt.Sprintf("%s < toDateTime64('%s 00:00:00', 3, '%s')", clock, w.behindEnd, zone)}
	if q.model == runsModel {
		where = append(where, "kind = 'agent'")
	}
	if q.agent != "" {
		where = append(where, "agent_id = '"+q.agent+"'")
	}
	if q.needsRunStatus() {
		from = fmt.Sprintf(
			"(SELECT * FROM %s WHERE %s) AS a LEFT JOIN (SELECT run_id, status FROM naive_runs FINAL WHERE %s) AS r ON "+
				"a.run_id = r.run_id",
			from, strings.Join(where, " AND "), ofOrganization,
		)
		where = nil
	}

	var inner, outer, keys, order []string
	joinAgents := ""
	for _, d := range q.dimensions {
		switch d {
		case "day":
			inner, outer = append(inner, fmt.Sprintf("toDate(%s, '%s') AS day", clock, zone)), append(outer, "g.day")
			keys, order = append(keys, "day"), append(order, "g.day")
		case "agent_id":
			inner, outer = append(inner, "agent_id AS agent"), append(outer, "toString(g.agent) AS agent_text", "n.name")
			keys, order = append(keys, "agent"), append(order, "agent_text")
			joinAgents = " LEFT JOIN (SELECT agent_id, name FROM naive_agents FINAL WHERE " + ofOrganization +
				") AS n ON g.agent = n.agent_id"
		case "user_identifier":
			inner, outer = append(inner, identifier+" AS person", "max("+name+") AS person_name"), append(outer, "g.person",
				"g.person_name")
			keys, order = append(keys, "person"), append(order, "g.person NULLS LAST")
		case "user_type":
			inner, outer = append(inner, "initiator_type AS type"), append(outer, "g.type")
			keys, order = append(keys, "type"), append(order, "g.type NULLS LAST")
		default:
			panic("no naive SQL for the dimension " + d)
		}
	}
	for k, m := range q.metrics {
		inner, outer = append(inner, fmt.Sprintf("%s AS m%d", naiveMetrics[m], k)), append(outer, fmt.Sprintf("g.m%d", k))
	}
	sql := "SELECT " + strings.Join(inner, ", ") + " FROM " + from
	if where != nil {
		sql += " WHERE " + strings.Join(where, " AND ")
	}
	if len(keys) == 0 {
		return sql
	}
	return fmt.Sprintf("SELECT %s FROM (%s GROUP BY %s) AS g%s ORDER BY %s LIMIT %d",
		strings.Join(outer, ", "), sql, strings.Join(keys, ", "), joinAgents, strings.Join(order, ", "), q.limit)
}
