package plan

import (
	"slices"
	"time"

	"github.com/runlens/runlens/olap/catalog"
	"github.com/runlens/runlens/olap/query"
	"github.com/runlens/runlens/schema"
)

// KeyInitiator is the key of a rollup table that represents the identifier and the name of who started a run.
const KeyInitiator = "initiator_key"

// keyAgent is the one of the agent.
const keyAgent = "agent_id"

// longRange is the length of a range, in days of 24 hours, from which it pays to read it in several parts; and to read
// all runs of the organization instead of those in the join window.
const longRange = 100 * 24 * time.Hour

const (
	// RollupFrom is the number of records in the range from which the rollup answers quicker than base rows: its
	// statements cost about 20 ms whatever there is, and a scan as much for so many (schema/decisions/threshold.md).
	RollupFrom = 350_000
	// aggregatesFrom is the same where a projection answers that has no keys but the agent: it costs as little as it ever
	// does, and a scan takes longest for the agents' ids.
	aggregatesFrom = 200_000
	// rollupFromAll is the number of records from which the rollup is used for any range: they may all lie in it.
	rollupFromAll = 2_000_000
	// windowFrom is the number of records from which the join window costs less than all runs of the organization.
	windowFrom = 300_000
)

// usualAgents and usualWords are how many agents most organizations have at most, and how many words such a dimension
// has. Where there are more, a query may execute twice the first time it is asked.
const (
	usualAgents = 50
	usualWords  = 5
)

// Needs are what a query needs, whatever is known of its organization.
type Needs struct {
	Query  query.Query
	Source *catalog.Source
	Order  []query.OrderTerm // the completed order; empty for totals

	Fields     []*catalog.Field // of rows of the model's own table
	RunFields  []*catalog.Field // of the current state of the run; empty for no join
	Aggregates []*catalog.Metric
	AgentNames bool
	Day        bool // rows are distinguished by their local day
	CountsRows bool // a repeated row would be counted twice

	// Rollup is the rollup table that has everything, and RollupKeys its keys that are needed; nil where it lacks a
	// metric, a dimension or a filter.
	Rollup     *schema.RollupTable
	RollupKeys []string
}

// Of returns the needs of a query.
func Of(q query.Query) Needs {
	n := Needs{Query: q, Source: &q.Model.Source}
	if !q.Totals() {
		n.Order = q.Completed()
	}
	for _, metric := range q.Metrics {
		n.metric(metric)
	}
	if q.MinPeople > 0 {
		n.metric(&q.Model.People)
	}
	for _, dimension := range q.Dimensions {
		n.dimension(dimension)
		for _, companion := range dimension.Companions {
			if companion.Field == "" {
				n.AgentNames = true
			} else {
				n.field(companion.Field)
			}
		}
	}
	for _, filter := range q.Filters {
		n.dimension(filter.Dimension)
	}
	n.rollup()
	return n
}

func (n *Needs) metric(metric *catalog.Metric) {
	for _, name := range metric.From {
		n.metric(n.Query.Model.Metric(name))
	}
	if metric.Aggregate == "" || slices.Contains(n.Aggregates, metric) {
		return
	}
	n.Aggregates = append(n.Aggregates, metric)
	n.CountsRows = n.CountsRows || metric.CountsRows
	for _, name := range metric.Fields {
		n.field(name)
	}
}

func (n *Needs) dimension(dimension *catalog.Dimension) {
	if dimension.Kind == catalog.Day {
		n.Day = true
	} else {
		n.field(dimension.Field)
	}
}

func (n *Needs) field(name string) {
	field := n.Source.Field(name)
	into := &n.Fields
	if field.FromRun {
		into = &n.RunFields
	}
	if !slices.Contains(*into, field) {
		*into = append(*into, field)
	}
}

// rollup finds out whether the rollup has everything.
func (n *Needs) rollup() {
	if len(n.Aggregates) == 0 {
		return
	}
	var keys []string
	has := func(name string) bool {
		if !slices.Contains(keys, name) {
			keys = append(keys, name)
		}
		return n.Source.Rollup.Key(name) != nil
	}
	for _, m := range n.Aggregates {
		if m.RollupSum == "" && !(m.CountsInitiators && has(KeyInitiator)) {
			return
		}
	}
	for _, d := range n.Query.Dimensions {
		if d.Kind != catalog.Day && !has(RollupKey(d)) {
			return
		}
	}
	for _, f := range n.Query.Filters {
		if f.Dimension.Kind != catalog.Day && !has(RollupKey(f.Dimension)) {
			return
		}
	}
	n.Rollup, n.RollupKeys = n.Source.Rollup, keys
}

// RollupKey is the key of a rollup table for a dimension.
func RollupKey(d *catalog.Dimension) string {
	if d.Kind == catalog.Identifier {
		return KeyInitiator
	}
	return d.Field
}

// UsesInitiatorKeys reports whether an answer from the rollup depends on initiator keys.
func (n *Needs) UsesInitiatorKeys() bool { return slices.Contains(n.RollupKeys, KeyInitiator) }

// countsInitiatorsByDay reports whether people are counted by the day and nothing else.
func (n *Needs) countsInitiatorsByDay() bool {
	return len(n.Query.Dimensions) == 1 && n.Query.Dimensions[0].Kind == catalog.Day &&
		slices.ContainsFunc(n.Aggregates, func(m *catalog.Metric) bool { return m.CountsInitiators })
}

// long reports whether the range is a long one.
func (n *Needs) long() bool {
	return n.Query.Range.EndUTC.Sub(n.Query.Range.StartUTC) >= longRange
}

// Memory is what is remembered of an organization and of earlier answers when an attempt begins.
type Memory struct {
	Idle    bool // nothing was stored of the organization a short time ago: a boundary can be derived
	Awaited bool // an earlier attempt waited for a boundary
	Asked   bool // the query was answered before,
	OnePage bool // with one page
}

// expectsOnePage reports whether no page is expected to follow an answer.
func (n *Needs) expectsOnePage(m Memory) bool {
	if m.Asked {
		return m.OnePage
	}
	probably, possibly := n.fitsPage()
	return probably || possibly && m.Idle
}

// fitsPage reports whether one page probably has the whole answer of a query that was not asked before: it
// distinguishes agents, or nothing but what the catalog or the range bounds. It possibly has, unless the values of one
// dimension alone are too many: few answers have all combinations.
func (n *Needs) fitsPage() (probably, possibly bool) {
	rows, possibly := 1, true
	for _, d := range n.Query.Dimensions {
		values := n.values(d)
		rows *= values
		possibly = possibly && values <= n.Query.Limit
	}
	return rows <= n.Query.Limit, possibly
}

// values is about how many values of a dimension an answer has.
func (n *Needs) values(d *catalog.Dimension) int {
	switch {
	case d.Kind == catalog.Day:
		return int(n.Query.Range.EndUTC.Sub(n.Query.Range.StartUTC)/(24*time.Hour)) + 1
	case d.Kind == catalog.AgentID:
		return usualAgents
	case d.Show != "": // a word of a few
		return usualWords
	}
	return query.MaxLimit + 1
}

// inRange is about how many of an organization's records lie in the range, if they are of a year.
func (n *Needs) inRange(records uint64) uint64 {
	const year = 365 * 24 * time.Hour
	length := min(n.Query.Range.EndUTC.Sub(n.Query.Range.StartUTC), year)
	return records * uint64(length/time.Hour) / uint64(year/time.Hour)
}

// rowsRead is about how many rows a statement reads of the base tables of an organization with so many records, the
// runs among them if it needs states.
func (n *Needs) rowsRead(records uint64) uint64 {
	if len(n.RunFields) > 0 {
		return records
	}
	return n.inRange(records)
}

// rollupPays reports whether the rollup answers quicker than base rows, of an organization with so many records.
func (n *Needs) rollupPays(records uint64) bool {
	return n.inRange(records) >= n.rollupFrom() || records >= rollupFromAll
}

// rollupFrom is the number of records in the range from which it does.
func (n *Needs) rollupFrom() uint64 {
	ofOthers := func(key string) bool { return key != keyAgent }
	if p, _ := n.projection(); p != nil && !slices.ContainsFunc(p.Keys, ofOthers) {
		return aggregatesFrom
	}
	return RollupFrom
}

// projection is the smallest projection of the rollup that answers, or nil with the reason why none does.
func (n *Needs) projection() (*schema.Projection, Reason) {
	if n.Rollup == nil {
		return nil, MemberNotInRollup
	}
	reason := ProjectionLacksKey
	for i, p := range n.Rollup.Projections {
		if slices.ContainsFunc(n.RollupKeys, func(key string) bool { return !slices.Contains(p.Keys, key) }) {
			continue
		}
		if n.hasSpans(p.SpanMillis) {
			return &n.Rollup.Projections[i], ""
		}
		reason = RangeOffSpans
	}
	return nil, reason
}

// joinsWindow reports whether the states of runs are needed of an organization with so many records, most of which were
// created around the range: in the join window.
func (n *Needs) joinsWindow(records uint64) bool {
	return len(n.RunFields) > 0 && !n.long() && records >= windowFrom
}

// hasSpans reports whether spans of time of a length in milliseconds can replace rows of the range. Of a long range in
// which days are not distinguished it is enough if some lie in it completely: to read the range's edges takes some
// milliseconds.
func (n *Needs) hasSpans(span int64) bool { return n.consistsOf(span) || !n.Day && n.long() }

// consistsOf reports whether the range consists of complete spans of time, each of which lies in one local day if days
// are distinguished.
func (n *Needs) consistsOf(span int64) bool {
	on := func(t time.Time) bool { return t.UnixMilli()%span == 0 }
	r := n.Query.Range
	if n.Day {
		for i, o := range r.Offsets {
			if o.Millis%span != 0 || i < len(r.Offsets)-1 && !on(o.UntilUTC) {
				return false
			}
		}
		if millisPerDay%span != 0 {
			return false
		}
	}
	return on(r.StartUTC) && on(r.EndUTC)
}

const millisPerDay = 24 * 60 * 60 * 1000
