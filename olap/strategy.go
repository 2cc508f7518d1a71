package olap

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/runlens/runlens/olap/plan"
	"github.com/runlens/runlens/schema"
)

// A Strategy says how an answer was computed, for logs and metrics: no answer depends on it.
type Strategy struct {
	// Reads is what the statement read: "base" rows, base rows with the runs outside the join window sent along
	// ("base_runs_sent"), "rollup_rows" or "rollup_aggregates"; "cached_answer" for no statement at all.
	Reads string `json:"reads"`
	// Delta is how the statement had what the rollup lacks: "none" where it lacks nothing, "inline" (computed in the
	// statement) or "cached" (sent along). Empty for base rows.
	Delta string `json:"delta,omitzero"`
	// Page is "single" for an answer that no page was expected to follow, "first" or "next".
	Page string `json:"page"`
	// Reason is why no faster strategy was used (plan.Reason); empty where there is none.
	Reason string `json:"reason,omitzero"`
	// Refreshing says that a refresh of the rollup was in progress when the plan was made.
	Refreshing bool `json:"refreshing,omitzero"`
	// Attempt is the number of the statement, from 1, 0 for a cached answer, and Refuted what earlier ones assumed
	// wrongly.
	Attempt int      `json:"attempt"`
	Refuted []string `json:"refuted,omitzero"`
}

func strategyOf(a *attempt, p plan.Plan) Strategy {
	return Strategy{
		Reads: p.Strategy.String(), Delta: p.Delta.String(), Page: a.boundary.page, Reason: string(p.Reason),
		Refreshing: a.delta.State.Refreshing, Attempt: a.number, Refuted: a.refuted.Names(),
	}
}

// comment is what ClickHouse's own log says about an execution; strategy is nil where it gives no answer.
func comment(r Request, strategy *Strategy) string {
	text, err := json.Marshal(struct {
		RequestID      string                `json:"request_id"`
		OrganizationID schema.OrganizationID `json:"organization_id"`
		KeyID          string                `json:"key_id"`
		Strategy       *Strategy             `json:"strategy,omitempty"`
	}{r.RequestID, r.OrganizationID, r.KeyID, strategy})
	if err != nil {
		return fmt.Sprintf("comment: %v", err)
	}
	return string(text)
}
