package plan

// Options switch off what makes answers quicker. The answers are the same, which a test checks of each. The zero value
// is what servers use.
type Options struct {
	Records       uint64 `json:"records,omitzero"`       // so many at least is every organization taken to have
	NoRollup      bool   `json:"noRollup,omitzero"`      // base rows answer
	NoAggregates  bool   `json:"noAggregates,omitzero"`  // of the rollup, rows are read and no projection
	NoCachedDelta bool   `json:"noCachedDelta,omitzero"` // every statement computes the delta
	NoOwnClock    bool   `json:"noOwnClock,omitzero"`    // a query with pages never takes the clock of its statement
	NoDerived     bool   `json:"noDerived,omitzero"`     // … nor derives its boundary
	NoWindow      bool   `json:"noWindow,omitzero"`      // the states of all runs are read
	NoPackedDays  bool   `json:"noPackedDays,omitzero"`  // a person and a day are three keys, not one
	NoPairGroups  bool   `json:"noPairGroups,omitzero"`  // pairs are distinct counts
}
