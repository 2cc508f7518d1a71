package catalog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/runlens/runlens/schema"
)

// agentRuns is spec 2.7.
var agentRuns = Model{
	Name: "agent_runs",
	Description: "Counts the runs of task agents by the moment they were created, with their current status. " +
		"Runs that only support another run (sub-agents, browser, phone, inbound phone and platform runs) are left out, " +
		"and so is everything that happens inside a run, such as messages or tool calls.",
	Grain:      "One run of a task agent.",
	EventClock: "createdAt",

	Source: Source{
		Table:       schema.TableRuns,
		ClockColumn: "created_at",
		Mutable:     true,
		Rollup:      schema.RollupOf(schema.TableRuns),
		Predicate:   schema.AgentRunSQL,
		Fields: []Field{
			{Name: "status", SQL: schema.StatusBits("state")},
			{Name: "agent_id", SQL: "tupleElement(agent, 'agent_id')"},
			{Name: "user_identifier", SQL: "tupleElement(record, 'initiator_identifier')"},
			{Name: "initiator", SQL: "tupleElement(initiator, 'initiator')"},
			{Name: "user_name", SQL: "tupleElement(record, 'initiator_name')"},
			{Name: "user_type", SQL: schema.InitiatorTypeSQL},
			{Name: "user_domain", SQL: schema.DomainSQL("tupleElement(record, 'initiator_identifier')")},
		},
	},

	Unpublished: []Dimension{{Name: RestrictedDomain, Kind: Text, Field: "user_domain"}},
	// An automated initiator is no person.
	People: Metric{
		Name:      "people",
		Aggregate: fmt.Sprintf("uniqExactIf(f_initiator, f_initiator != 0 AND f_user_type != %d)", automated),
		Fields:    []string{"initiator", "user_type"},
	},

	Metrics: []Metric{
		{
			Name: "run_count", Additive: true,
			Description: "How many runs were created, whatever their status is now.",
			Aggregate:   "count()", CountsRows: true, RollupSum: "runs",
		},
		{
			Name: "completed_run_count", Additive: true,
			Description: "How many of the runs are COMPLETED now.",
			Aggregate:   countStatus(schema.StatusCompleted), Fields: []string{"status"}, CountsRows: true,
			RollupSum: "completed",
		},
		{
			Name: "failed_run_count", Additive: true,
			Description: "How many of the runs are FAILED now.",
			Aggregate:   countStatus(schema.StatusFailed), Fields: []string{"status"}, CountsRows: true, RollupSum: "failed",
		},
		{
			Name: "cancelled_run_count", Additive: true,
			Description: "How many of the runs are CANCELLED now.",
			Aggregate:   countStatus(schema.StatusCancelled), Fields: []string{"status"}, CountsRows: true,
			RollupSum: "cancelled",
		},
		{
			Name: "active_run_count", Additive: true,
			Description: "How many of the runs have not ended: their status is PENDING, RUNNING, WAITING_FOR_SLOT, " +
				"CANCELLING, AWAITING_REPLY, SLEEPING, PAUSING or PAUSED now.",
			Aggregate: countStatus(schema.ActiveStatuses...), Fields: []string{"status"}, CountsRows: true, RollupSum: "active",
		},
		{
			Name: "run_success_rate", Kind: Ratio,
			Description: "The share of COMPLETED runs among those that are COMPLETED or FAILED, from 0 to 1. Cancelled and " +
				"active runs play no part. Null when no run is COMPLETED or FAILED.",
			Derived: "m_completed_run_count / nullIf(m_completed_run_count + m_failed_run_count, 0)",
			From:    []string{"completed_run_count", "failed_run_count"},
		},
		{
			Name: "unique_initiator_count",
			Description: "How many different people or automated initiators, distinguished by identifier, started the runs. " +
				"Initiators without an identifier are not counted.",
			// The number of an absent identifier is 0 (schema/DESIGN.md).
			Aggregate: "uniqExactIf(f_initiator, f_initiator != 0)", Fields: []string{"initiator"}, CountsInitiators: true,
		},
	},

	Dimensions: []Dimension{
		{
			Name: "agent_id", Kind: AgentID, Field: "agent_id", Show: "toString(?)",
			Description: "The task agent that ran, as its UUID. A filter takes the UUID or the agent's slug; a slug means " +
				"the agent that holds it when the query runs. Runs of deleted agents are included.",
			Companions: []Companion{agentName},
		},
		{
			Name: "user_identifier", Kind: Identifier, Field: "user_identifier",
			Description: "Who or what started the run: an identifier such as a normalized email address or phone number. Runs " +
				"without one form a group whose value is null.",
			Companions: []Companion{{
				Name: "user_name", Field: "user_name",
				Description: "A display name of the initiator: of the names recorded in the group the one that sorts last. " +
					"Null in the group without an identifier.",
			}},
		},
		{
			Name: "user_type", Kind: Text, Field: "user_type", Show: showCode(schema.InitiatorTypes),
			Description: "The class of the initiator: internal, external, automated (a schedule or an integration, no " +
				"person) or unknown. Null when none was recorded.",
		},
		{
			Name: "day", Kind: Day,
			Description: "The calendar day on which the run was created, in the requested timezone, as YYYY-MM-DD. Days " +
				"without runs do not appear.",
		},
	},
}

// automated is the code of the initiator type of that name.
var automated = slices.Index(schema.InitiatorTypes, "automated") + 1

var agentName = Companion{
	Name: "agent_name",
	Description: "The agent's display name as it is now, so a rename also changes how earlier rows are labelled. Null " +
		"when the agent is not known.",
}

func countStatus(statuses ...schema.RunStatus) string {
	return "countIf(" + statusIn(statuses...) + ")"
}

// statusIn is the condition that the field status has the bits of one of them.
func statusIn(statuses ...schema.RunStatus) string {
	if len(statuses) == 1 {
		return fmt.Sprintf("f_status = %d", statuses[0].Bits())
	}
	bits := make([]string, len(statuses))
	for i, s := range statuses {
		bits[i] = fmt.Sprint(s.Bits())
	}
	return "f_status IN (" + strings.Join(bits, ", ") + ")"
}

// showCode is the SQL that turns a code into its word; codes count from 1, and 0 is null.
func showCode(words []string) string {
	codes, quoted := make([]string, len(words)), make([]string, len(words))
	for i, word := range words {
		codes[i], quoted[i] = fmt.Sprint(i+1), "'"+word+"'"
	}
	return fmt.Sprintf("nullIf(transform(?, [%s], [%s], ''), '')", strings.Join(codes, ", "), strings.Join(quoted, ", "))
}
