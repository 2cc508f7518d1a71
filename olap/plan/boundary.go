package plan

// A Boundary is how asOf is found, the instant after which no row that counts was first stored.
type Boundary uint8

const (
	OwnClock Boundary = iota // of the statement itself
	Given                    // by a cursor
	Derived                  // from the last snapshot of the store
	Awaited                  // from one that was waited for
)

// Memory is what is remembered of an organization and of earlier answers when an attempt begins.
type Memory struct {
	Idle    bool // nothing was stored of the organization a short time ago: a boundary can be derived
	Awaited bool // an earlier attempt waited for a boundary
	Asked   bool // the query was answered before,
	OnePage bool // with one page
}

// ChooseBoundary is rules 11 to 14.
func (n Needs) ChooseBoundary(continues bool, m Memory, refuted Assumption, o Options) Boundary {
	switch {
	case continues:
		return Given
	case !n.Query.Pages() || refuted&OnePage == 0 && !o.NoOwnClock && n.expectsOnePage(m):
		return OwnClock
	case refuted&Idle == 0 && !o.NoDerived && m.Idle && !m.Awaited:
		return Derived
	}
	return Awaited
}

func (n Needs) expectsOnePage(m Memory) bool {
	if m.Asked {
		return m.OnePage
	}
	probably, possibly := n.FitsPage()
	return probably || possibly && m.Idle
}

func (b Boundary) assumes() Assumption {
	switch b {
	case OwnClock:
		return OnePage
	case Derived:
		return Idle
	}
	return 0
}

// Page is what a page is called in logs: "single" for one that no page was expected to follow, "first" or "next".
func (p Plan) Page() string {
	switch {
	case p.Boundary == Given:
		return "next"
	case p.Boundary == OwnClock:
		return "single"
	}
	return "first"
}

// An Outcome is what was found when a plan's statement had run.
type Outcome struct {
	SharedKeys  bool // the statement failed since a key represents two texts
	LogChanged  bool // it failed since the rollup log has newer entries
	Unconfirmed bool // pages cannot share its boundary
}

// Refutes returns which assumptions of a plan an outcome refutes.
func (p Plan) Refutes(o Outcome) Assumption {
	switch {
	case o.SharedKeys:
		return KeysDistinct
	case o.LogChanged && p.Assumes&DeltaHolds != 0:
		return DeltaHolds
	case o.LogChanged:
		return RollupUnaltered
	case o.Unconfirmed:
		return p.Boundary.assumes()
	}
	return 0
}
