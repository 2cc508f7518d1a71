package catalog

import "github.com/runlens/runlens/schema"

const (
	isInitiated  = "f_activity_type = 'initiated'"
	isInteracted = "f_activity_type = 'interacted'"
)

// agentUserActivity is spec 2.8.
var agentUserActivity = Model{
	Name: "agent_user_activity",
	Description: "Follows identified people and the runs they had to do with, by the moment of each attribution record. " +
		"Run counts are counts of different combinations of a person and a run; a run that two people took part in counts " +
		"twice. interaction_count alone counts every recorded interaction.",
	Grain:      "One attribution record: a person started, was associated with, or interacted with a run.",
	EventClock: "occurredAt",

	Source: Source{
		Table:       schema.TableAttributions,
		ClockColumn: "occurred_at",
		Rollup:      schema.RollupOf(schema.TableAttributions),
		Fields: []Field{
			{Name: "run_id", SQL: "run_id"},
			{Name: "pair", SQL: "pair"},
			{Name: "agent_id", SQL: "agent_id"},
			{Name: "user_identifier", SQL: "user_identifier"},
			{Name: "user_name", SQL: "user_name"},
			{Name: "user_domain", SQL: "user_domain"},
			{Name: "activity_type", SQL: "activity_type"},
			{Name: "run_initiation_type", SQL: "run_initiation_type"},
			{Name: "source", SQL: "source"},
			{Name: "status", SQL: schema.StatusBits("run_state"), FromRun: true},
		},
	},

	People: Metric{Name: "people", Aggregate: "uniqExact(f_user_identifier)", Fields: []string{"user_identifier"}},

	Metrics: []Metric{
		pairs("attributed_run_count",
			"How many different combinations of a person and a run have at least one attribution record.", ""),
		pairs("initiated_run_count",
			"How many different combinations of a person and a run have a record of the person starting the run.",
			isInitiated, "activity_type"),
		{
			Name: "associated_run_count",
			Description: "attributed_run_count less initiated_run_count: the combinations without a record of the person " +
				"starting the run among the records that the date range and the filters select.",
			Derived: "m_attributed_run_count - m_initiated_run_count",
			From:    []string{"attributed_run_count", "initiated_run_count"},
		},
		pairs("interacted_run_count",
			"How many different combinations of a person and a run have at least one recorded interaction.",
			isInteracted, "activity_type"),
		{
			Name: "interaction_count", Additive: true,
			Description: "How many interactions were recorded. Every one counts, also several by one person in one run.",
			Aggregate:   "countIf(" + isInteracted + ")", Fields: []string{"activity_type"}, CountsRows: true,
			RollupSum: "interacted",
		},
		pairsWithStatus("completed_attributed_run_count",
			"How many of the attributed combinations of a person and a run belong to a run that is COMPLETED now.",
			schema.StatusCompleted),
		pairsWithStatus("failed_attributed_run_count",
			"How many of the attributed combinations of a person and a run belong to a run that is FAILED now.",
			schema.StatusFailed),
		pairsWithStatus("cancelled_attributed_run_count",
			"How many of the attributed combinations of a person and a run belong to a run that is CANCELLED now.",
			schema.StatusCancelled),
		pairsWithStatus("active_attributed_run_count",
			"How many of the attributed combinations of a person and a run belong to a run that has not ended.",
			schema.ActiveStatuses...),
	},

	Dimensions: []Dimension{
		{
			Name: "agent_id", Kind: AgentID, Field: "agent_id", Show: "toString(?)",
			Description: "The task agent of the attributed run, as its UUID. A filter takes the UUID or the agent's slug; a " +
				"slug means the agent that holds it when the query runs.",
			Companions: []Companion{agentName},
		},
		{
			Name: "user_identifier", Kind: Identifier, Field: "user_identifier",
			Description: "The person: a normalized email address or an E.164 phone number.",
			Companions: []Companion{{
				Name: "user_name", Field: "user_name",
				Description: "A display name of the person: of the names captured in the group's records the one that sorts " +
					"last. Null when none was captured.",
			}},
		},
		{
			Name: "user_domain", Kind: Text, Field: "user_domain",
			Description: "The domain of the person's email address in lower case. Null for people known by a phone number.",
		},
		{
			Name: "activity_type", Kind: Text, Field: "activity_type", Show: "toString(?)",
			Description: "What the record says the person did: initiated (started the run), associated (was linked to it) or " +
				"interacted.",
		},
		{
			Name: "run_initiation_type", Kind: Text, Field: "run_initiation_type", Show: "toString(?)",
			Description: "How the run began: human, automated (a schedule or an integration began it) or unknown, as known " +
				"when the record was written.",
		},
		{
			Name: "source", Kind: Text, Field: "source",
			Description: "The channel that the record came from.",
		},
		{
			Name: "day", Kind: Day,
			Description: "The calendar day of the record in the requested timezone, as YYYY-MM-DD. Days without records do " +
				"not appear.",
		},
	},
}

// pairs counts the different pairs of a person and a run in the rows that satisfy when, SQL over the fields, of all
// rows where it is empty. A pair is the 128 bits that the table keeps of both (schema/DESIGN.md); attributions are
// immutable, so repeats of a record do not change the count.
func pairs(name, description, when string, fields ...string) Metric {
	aggregate := "uniqExact(f_pair)"
	if when != "" {
		aggregate = "uniqExactIf(f_pair, " + when + ")"
	}
	return Metric{
		Name: name, Description: description, Aggregate: aggregate, Pairs: true, When: when, Fields: append(fields, "pair"),
	}
}

// pairsWithStatus counts pairs by the run's current status. A run that is not copied yet has no
// status and counts in none of these metrics (contract 4.11).
func pairsWithStatus(name, description string, statuses ...schema.RunStatus) Metric {
	return pairs(name, description, statusIn(statuses...), "status", "run_id")
}
