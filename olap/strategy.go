package olap

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/runlens/runlens/olap/compile"
	"github.com/runlens/runlens/schema"
)

// A Strategy says how an answer was computed, for logs: no answer depends on it.
type Strategy struct {
	// Reads is what the statement read: "base" rows, base rows with the runs outside the join window sent along
	// ("base_runs_sent"), "rollup_rows" or "rollup_aggregates".
	Reads string `json:"reads"`
	// Delta is how the statement had what the rollup lacks: "none" where it lacks nothing, "inline" (computed in the
	// statement) or "cached" (sent along). Empty for base rows.
	Delta string `json:"delta,omitzero"`
	// Page is "single" for an answer that no page was expected to follow, "first" or "next".
	Page string `json:"page"`
	// Reason is why base rows were read although the rollup has what was asked for; empty for every other answer.
	Reason string `json:"reason,omitzero"`
	// Refreshing says that a refresh of the rollup was in progress when the statement began.
	Refreshing bool `json:"refreshing,omitzero"`
	// Attempt is the number of the statement, from 1: a further one follows where an assumption did not hold.
	Attempt int `json:"attempt"`
}

// next completes a strategy by what the next statement of its request does.
func (s Strategy) next(in compile.Input, reads compile.Reads) Strategy {
	s.Attempt++
	s.Delta = ""
	switch {
	case reads == compile.ReadsBase && in.OutsideSince.IsZero():
		s.Reads = "base"
	case reads == compile.ReadsBase:
		s.Reads = "base_runs_sent"
	case reads == compile.ReadsRollupRows:
		s.Reads = "rollup_rows"
	default:
		s.Reads = "rollup_aggregates"
	}
	if reads != compile.ReadsBase {
		s.Reason = ""
		s.Delta = map[compile.DeltaFrom]string{
			compile.DeltaNone: "none", compile.DeltaInline: "inline", compile.DeltaCached: "cached",
		}[in.Changes]
	}
	return s
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
