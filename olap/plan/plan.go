// Package plan chooses how a query is answered. It is pure: all input from the store comes as Facts. Every choice is
// made here; olap/compile prints it.
//
// # Rules
//
// The first rule that applies decides where rows come from:
//
//  1. RowsBelowThreshold: base rows, where few records lie in the range. The rollup has a fixed price, and is cheapest
//     where a projection answers that has no keys but the agent: totals, days and agents leave base rows earlier.
//  2. MemberNotInRollup: base rows, where the rollup lacks a metric, a dimension or a filter. A key that sees less than
//     its organization filters too: by domain, which the rollup lacks, or by how many people are in a group, likewise.
//  3. RollupAltered, KeysShared: base rows, where an earlier attempt found that the rollup could not be used.
//  4. RollupUnusable: base rows while the rollup has no watermark: the organization is purged, its rollup is damaged,
//     or no refresher runs.
//  5. Rollup rows or aggregates. A projection is used (RollupAggregates) if it has all keys, and the range consists of
//     its spans of time; of a long range without days it is enough that some spans lie in it. Otherwise rows are read:
//     AsOfBeforeWatermark, where asOf is before the watermark, so that first_stored_at decides; ProjectionLacksKey;
//     RangeOffSpans.
//
// A rollup answer needs the delta:
//
//  6. DeltaNone if the delta was read apart and is empty. DeltaInline if it could not be read apart (too many rows,
//     or a refresh batch in progress), was invalidated by a refresh, or lacks the initiator keys that the answer
//     needs. Else DeltaCached.
//  7. PackedDays if people are counted by the day alone, in a long range, where there are many pairs of both.
//
// Base rows:
//
//  8. FINAL collapses versions where records have versions or conflicts, or repeats would be counted.
//  9. States of runs come from all runs of the organization. If it has many and the range is not long, they come from
//     the join window and, for runs outside it, by a look-up of their hashes.
//  10. Pairs of a totals query in whose range are probably many rows are groups with one bit a metric, unless people
//     are counted as well. Of more than a few million in a long range, with states, they are counted in hash buckets,
//     one after the other, to bound memory.
//
// All rows:
//
//  11. Where probably few rows are read, or a projection without keys, one thread reads them all: to share the work
//     would cost more than it helps.
//
// asOf:
//
//  12. Given: a continuation has its cursor's.
//  13. OwnClock: the clock of the statement, of a query that no page follows, or that was answered with one page the
//     last time; so of one that was not asked before and probably has one page. If the organization is idle, it is
//     enough that it possibly has: should a page follow, both can share that clock.
//  14. Derived: another first page takes it from the last snapshot, if the organization is idle.
//  15. Awaited: otherwise it waits for inserts in flight. A further attempt uses it again.
package plan

import (
	"slices"
	"time"

	"github.com/runlens/runlens/olap/catalog"
	"github.com/runlens/runlens/schema"
)

// A Strategy is where the rows of an answer come from.
type Strategy uint8

const (
	Base             Strategy = iota // rows of the base tables
	RollupRows                       // rows of the rollup
	RollupAggregates                 // a projection of the rollup, and its rows at the range's edges
)

// A Delta is how a statement gets what the rollup lacks.
type Delta uint8

const (
	NoRollup    Delta = iota // the rollup is not read
	DeltaNone                // nothing was stored since the watermark
	DeltaInline              // computed in the statement
	DeltaCached              // sent with the statement
)

// An Assumption is what a plan takes for granted and is validated when the statement has run. They are bits.
type Assumption uint8

const (
	OnePage         Assumption = 1 << iota // no page follows, or one that can share the own clock of the statement as asOf
	Idle                                   // nothing is being stored that a derived boundary could miss
	DeltaHolds                             // no refresh batch began since the delta was read
	RollupUnaltered                        // nothing was changed and no damage found since the log was read
	KeysDistinct                           // every initiator key represents one text

	Everything = OnePage | Idle | DeltaHolds | RollupUnaltered | KeysDistinct
)

// A Boundary is how asOf is found, the instant after which no row that counts was first stored.
type Boundary uint8

const (
	OwnClock Boundary = iota // of the statement itself
	Given                    // by a cursor
	Derived                  // from the last snapshot of the store
	Awaited                  // from one that was waited for
)

// Facts are what is known of the store when an attempt begins.
type Facts struct {
	Records   uint64 // about how many the organization has, repeats among them; a few need not be counted
	Conflicts bool   // records were stored with several contents or under several clocks
	// AsOf is the instant after which no row that counts was first stored (contract 4.1); zero for the statement's own
	// clock, which is for base rows only.
	AsOf     time.Time
	Boundary Boundary   // how asOf is found
	Refuted  Assumption // what earlier attempts assumed wrongly
	Options  Options

	// Of the rollup, unless Needs.AvoidsRollup:
	Watermark            time.Time // zero where the rollup may not be used
	Lease, Damage, Begun uint64    // the newest entries of the rollup log when the watermark was read
	DeltaRead            bool      // the delta was read apart from a statement
	DeltaRows            int       // how many rows it has
}

// A Plan is everything that olap/compile prints but for the organization and the cursor.
type Plan struct {
	Needs
	Facts
	Strategy  Strategy
	Delta     Delta
	Reason    Reason // why no faster strategy
	Assumes   Assumption
	OneThread bool // one thread reads the rows

	// Of the rollup:
	Projection    *schema.Projection // its aggregates; nil for rows
	RowsByQuarter bool               // of their clock the quarter of an hour is read, which is quicker
	AfterAsOf     bool               // the rollup may have rows first stored after asOf
	PackedDays    bool               // a person and a day are one key

	// Of base rows:
	Final       bool // read with FINAL
	PairGroups  bool // pairs are groups, not distinct counts
	AllVersions bool // all versions of runs are joined; the greatest state counts
	Window      bool // runs in the join window are read by their clock, others by their hash; else all runs
	HashBuckets int  // how many parts pairs are counted in; 1 for at once
}

const (
	// inHashBucket is how many pairs are counted at once when the states of their runs are needed, which takes a second
	// hash table: 600 MiB together. A hash table doubles when it is half full: a little beyond 2^22 pairs.
	inHashBucket = 4_000_000
	// maxHashBuckets bounds the time: for every bucket all rows are read. From 128 million pairs on the buckets get larger
	// instead, and from some 800 million on they reach the memory of a statement.
	maxHashBuckets = 32
	// oneThreadBelow is the number of rows that one thread reads in about the time of two: their start takes a fifth of
	// the processor time of a small query.
	oneThreadBelow = 50_000
	// pairGroupsFrom is the number of rows from which pairs as groups are quicker than a distinct count for each metric:
	// they take two more layers, which cost a third of a small query.
	pairGroupsFrom = 30_000
)

// Plan applies the rules to the facts.
func (n Needs) Plan(f Facts) Plan {
	p := Plan{Needs: n, Facts: f, HashBuckets: 1, Assumes: f.Boundary.Assumes()}
	if p.Reason = n.AvoidsRollup(f); p.Reason == "" && (f.Watermark.IsZero() || f.AsOf.IsZero()) {
		p.Reason = RollupUnusable // rule 4
	}
	if p.Reason == "" {
		p.fromRollup()
	} else {
		p.fromBase()
	}
	return p
}

// AvoidsRollup is rules 1 to 3, which need no facts of the rollup; empty where none of them applies.
func (n *Needs) AvoidsRollup(f Facts) Reason {
	switch {
	case !n.rollupPays(f.Records):
		return RowsBelowThreshold
	case n.Rollup == nil:
		return MemberNotInRollup
	case f.Options.NoRollup:
		return SwitchedOff
	case f.Refuted&RollupUnaltered != 0:
		return RollupAltered
	case f.Refuted&KeysDistinct != 0 && n.UsesInitiatorKeys():
		return KeysShared
	}
	return ""
}

// fromRollup is rules 5 to 7.
func (p *Plan) fromRollup() {
	p.Strategy, p.Assumes = RollupRows, p.Assumes|RollupUnaltered
	if p.UsesInitiatorKeys() {
		p.Assumes |= KeysDistinct
	}
	switch {
	case !p.DeltaRead || p.Refuted&DeltaHolds != 0 || p.DeltaRows > 0 && p.UsesInitiatorKeys():
		p.Delta = DeltaInline
	case p.DeltaRows > 0:
		p.Delta, p.Assumes = DeltaCached, p.Assumes|DeltaHolds
	default:
		p.Delta, p.Assumes = DeltaNone, p.Assumes|DeltaHolds
	}
	if p.AfterAsOf = !p.AsOf.IsZero() && p.AsOf.Before(p.Watermark); p.AfterAsOf {
		p.Reason = AsOfBeforeWatermark
	} else if p.Options.NoAggregates {
		p.Reason = SwitchedOff
	} else {
		if p.Projection, p.Reason = p.projection(); p.Projection != nil {
			p.Strategy = RollupAggregates
			p.OneThread = len(p.Projection.Keys) == 0
			return
		}
	}
	p.RowsByQuarter = p.consistsOf(schema.QuarterMillis)
	p.PackedDays = !p.Options.NoPackedDays && p.long() && p.countsInitiatorsByDay()
}

// fromBase is rules 8 to 11.
func (p *Plan) fromBase() {
	pairs := func(m *catalog.Metric) bool { return m.Pairs }
	p.Final = p.Source.Mutable || p.Conflicts || p.CountsRows
	p.PairGroups = !p.Options.NoPairGroups && p.Query.Totals() && p.Query.MinPeople == 0 &&
		p.inRange(p.Records) >= pairGroupsFrom && slices.ContainsFunc(p.Aggregates, pairs)
	// All versions may be joined unless rows are counted, which they would repeat.
	p.AllVersions = p.PairGroups && len(p.RunFields) > 0 &&
		!slices.ContainsFunc(p.Aggregates, func(m *catalog.Metric) bool { return !m.Pairs })
	if p.PairGroups && len(p.RunFields) > 0 && p.long() {
		p.HashBuckets = int(min(1+p.inRange(p.Records)/inHashBucket, maxHashBuckets))
	}
	p.Window = !p.Options.NoWindow && p.joinsWindow(p.Records)
	p.OneThread = p.rowsRead(p.Records) < oneThreadBelow
}

// ChooseBoundary is rules 12 to 15.
func (n Needs) ChooseBoundary(m Memory, refuted Assumption, o Options) Boundary {
	switch {
	case n.Query.Cursor != "":
		return Given
	case !n.Query.Pages() || refuted&OnePage == 0 && !o.NoOwnClock && n.expectsOnePage(m):
		return OwnClock
	case refuted&Idle == 0 && !o.NoDerived && m.Idle && !m.Awaited:
		return Derived
	}
	return Awaited
}

// Assumes is what a plan with the boundary takes for granted of it.
func (b Boundary) Assumes() Assumption {
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

// AssumesOfLog is what does not hold if the rollup log was found to have newer entries than the plan has.
func (p Plan) AssumesOfLog() Assumption {
	if p.Assumes&DeltaHolds != 0 {
		return DeltaHolds
	}
	return RollupUnaltered
}

var strategyNames = []string{"base", "rollup_rows", "rollup_aggregates"}

// String is the strategy's name in logs and metrics.
func (s Strategy) String() string { return strategyNames[s] }

var deltaNames = []string{"", "none", "inline", "cached"}

// String is the delta's name in logs and metrics; empty where the rollup is not read.
func (d Delta) String() string { return deltaNames[d] }

var assumptionNames = []string{"one_page", "idle", "delta_holds", "rollup_unaltered", "keys_distinct"}

// Names are the names of assumptions in logs.
func (a Assumption) Names() (names []string) {
	for bit, name := range assumptionNames {
		if a&(1<<bit) != 0 {
			names = append(names, name)
		}
	}
	return names
}
