package plan

// A Reason is why a faster strategy was rejected; empty where there is none.
type Reason string

const (
	RowsBelowThreshold  Reason = "rows_below_threshold"
	MemberNotInRollup   Reason = "member_not_in_rollup"
	RollupAltered       Reason = "rollup_altered"
	RollupUnusable      Reason = "rollup_unusable"
	KeysShared          Reason = "shared_initiator_keys"
	AsOfBeforeWatermark Reason = "as_of_before_watermark"
	ProjectionLacksKey  Reason = "projection_lacks_key"
	RangeOffSpans       Reason = "range_off_spans"

	SlowerThanChosen Reason = "slower_than_chosen" // of Rejected only
	SwitchedOff      Reason = "switched_off"
)

// explanations say of every reason what it means.
var explanations = map[Reason]string{
	RowsBelowThreshold:  "so few records lie in the range that base rows are as quick",
	MemberNotInRollup:   "the rollup lacks a metric, a dimension or a filter of the question or of its key",
	RollupAltered:       "the rollup was altered while an earlier attempt read it",
	RollupUnusable:      "the rollup has no watermark: it is damaged, as during a purge, or no server refreshes it",
	KeysShared:          "an initiator key represents two texts, and the answer depends on such keys",
	AsOfBeforeWatermark: "asOf is before the watermark, so that rows decide by when they were first stored",
	ProjectionLacksKey:  "no projection of the rollup has all keys that the question needs",
	RangeOffSpans:       "the range does not consist of the spans of time of the projection",
	SlowerThanChosen:    "the chosen strategy is quicker",
	SwitchedOff:         "an option of this server switches it off",
}

// Meaning explains a reason in words.
func (r Reason) Meaning() string { return explanations[r] }

// A Rejection is a strategy that was not chosen, and why.
type Rejection struct {
	Strategy Strategy
	Reason   Reason
}

// Rejected are the other strategies of a plan, the quickest first, with the reason of the rule that rejected each.
func (p Plan) Rejected() (rejected []Rejection) {
	for _, s := range []Strategy{RollupAggregates, RollupRows, Base} {
		switch {
		case s == p.Strategy:
		case s < p.Strategy:
			rejected = append(rejected, Rejection{s, SlowerThanChosen})
		default:
			rejected = append(rejected, Rejection{s, p.Reason})
		}
	}
	return rejected
}
