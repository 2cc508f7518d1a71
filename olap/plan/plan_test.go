package plan

import (
	"testing"
	"time"

	"github.com/runlens/runlens/olap/query"
)

func needs(t *testing.T, body, start, end, zone string) Needs {
	t.Helper()
	q, err := query.Parse([]byte("{" + body + `,"range":{"start":"` + start + `","end":"` + end + `","timezone":"` + zone +
		`"}}`))
	if err != nil {
		t.Fatal(body, err)
	}
	return Of(q)
}

const (
	runs       = `"model":"agent_runs","metrics":["run_count"]`
	byDay      = runs + `,"dimensions":["day"]`
	byPerson   = runs + `,"dimensions":["user_identifier"]`
	byAgent    = runs + `,"dimensions":["agent_id"]`
	initiators = `"model":"agent_runs","metrics":["unique_initiator_count"]`
	pairs      = `"model":"agent_user_activity","metrics":["attributed_run_count"]`
	states     = `"model":"agent_user_activity","metrics":["completed_attributed_run_count"]`
	counted    = `"model":"agent_user_activity","metrics":["completed_attributed_run_count","interaction_count"]`
)

var (
	asOf  = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	large = Facts{Records: rollupFromAll, AsOf: asOf, Watermark: asOf.Add(-time.Second), DeltaRead: true}
)

func with(f Facts, change func(*Facts)) Facts {
	change(&f)
	return f
}

// Every rule of the package comment, with what it rejects and assumes.
func TestRules(t *testing.T) {
	inline := with(large, func(f *Facts) { f.DeltaRead = false })
	cached := with(large, func(f *Facts) { f.DeltaRows = 3 })
	refuted := func(f Facts, a Assumption) Facts { return with(f, func(f *Facts) { f.Refuted = a }) }
	for name, c := range map[string]struct {
		body    string
		facts   Facts
		want    Strategy
		delta   Delta
		reason  Reason
		assumes Assumption
	}{
		"1 few in the range": {runs, with(large, func(f *Facts) { f.Records-- }), Base, NoRollup, RowsBelowThreshold, 0},
		"2 member":           {pairs, large, Base, NoRollup, MemberNotInRollup, 0},
		"3 altered":          {runs, refuted(large, RollupUnaltered), Base, NoRollup, RollupAltered, 0},
		"3 keys refuted":     {byPerson, refuted(large, KeysDistinct), Base, NoRollup, KeysShared, 0},
		"3 keys that are not used": {runs, refuted(large, KeysDistinct), RollupAggregates, DeltaNone, "",
			RollupUnaltered | DeltaHolds},
		"3 everything refuted": {runs, refuted(large, Everything), Base, NoRollup, RollupAltered, 0},
		"4 no watermark": {runs, with(large, func(f *Facts) { f.Watermark = time.Time{} }), Base, NoRollup,
			RollupUnusable, 0},
		"5 before the watermark": {runs, with(large, func(f *Facts) { f.AsOf = f.Watermark.Add(-1) }), RollupRows, DeltaNone,
			AsOfBeforeWatermark, RollupUnaltered | DeltaHolds},
		"5 at the watermark": {runs, with(large, func(f *Facts) { f.AsOf = f.Watermark }), RollupAggregates, DeltaNone, "",
			RollupUnaltered | DeltaHolds},
		"5 off spans": {initiators, large, RollupRows, DeltaNone, RangeOffSpans, RollupUnaltered | DeltaHolds | KeysDistinct},
		"5 no such projection": {runs + `,"dimensions":["agent_id","user_type"]`, large, RollupRows, DeltaNone,
			ProjectionLacksKey,
			RollupUnaltered | DeltaHolds},
		"6 cached":              {byDay, cached, RollupAggregates, DeltaCached, "", RollupUnaltered | DeltaHolds},
		"6 cached, invalidated": {byDay, refuted(cached, DeltaHolds), RollupAggregates, DeltaInline, "", RollupUnaltered},
		"6 inline":              {byDay, inline, RollupAggregates, DeltaInline, "", RollupUnaltered},
		"6 none, with keys": {byPerson, large, RollupRows, DeltaNone, RangeOffSpans,
			RollupUnaltered | DeltaHolds | KeysDistinct},
		"6 cached, with keys": {byPerson, cached, RollupRows, DeltaInline, RangeOffSpans, RollupUnaltered | KeysDistinct},
		"6 inline, with keys": {byPerson, inline, RollupRows, DeltaInline, RangeOffSpans, RollupUnaltered | KeysDistinct},
		"9 states":            {states, large, Base, NoRollup, MemberNotInRollup, 0},
	} {
		c.facts.Boundary = Given
		p := needs(t, c.body, "2026-01-01", "2026-01-31", "UTC").Plan(c.facts)
		if p.Strategy != c.want || p.Delta != c.delta || p.Reason != c.reason || p.Assumes != c.assumes {
			t.Errorf("%s: strategy %d, delta %d, reason %q, assumes %b; want %d, %d, %q, %b",
				name, p.Strategy, p.Delta, p.Reason, p.Assumes, c.want, c.delta, c.reason, c.assumes)
		}
		// A log with newer entries refutes what was read of it before; a delta that is read with the answer has them.
		ofLog := DeltaHolds
		if c.delta == DeltaInline {
			ofLog = RollupUnaltered
		}
		if got := p.AssumesOfLog(); c.want != Base && got != ofLog {
			t.Errorf("%s: newer entries refute %b, want %b", name, got, ofLog)
		}
	}
}

// Rules 8 and 10.
func TestBaseRows(t *testing.T) {
	year := [2]string{"2025-02-01", "2026-01-31"}
	month := [2]string{"2026-01-01", "2026-01-31"}
	const (
		grouped = pairGroupsFrom*365/31 + 1 // of which a month of 31 days has enough
		few     = grouped - 1
		full    = inHashBucket - 1
	)
	for name, c := range map[string]struct {
		body               string
		days               [2]string
		records            uint64
		conflicts          bool
		final, groups, all bool
		buckets            int
	}{
		"versions": {body: runs, days: month, records: grouped, final: true, buckets: 1},
		"pairs":    {body: pairs, days: month, records: grouped, groups: true, buckets: 1},
		"pairs with conflicts": {days: month, records: grouped, conflicts: true, final: true, groups: true, buckets: 1,
			body: pairs},
		"pairs of few rows":            {body: pairs, days: month, records: few, buckets: 1},
		"states of few rows":           {body: states, days: month, records: few, buckets: 1},
		"pairs by day":                 {body: pairs + `,"dimensions":["day"]`, days: month, records: grouped, buckets: 1},
		"states":                       {body: states, days: month, records: grouped, groups: true, all: true, buckets: 1},
		"states and records":           {body: counted, days: month, records: grouped, final: true, groups: true, buckets: 1},
		"states of a full hash bucket": {body: states, days: year, records: full, groups: true, all: true, buckets: 1},
		"states of one pair more":      {body: states, days: year, records: full + 1, groups: true, all: true, buckets: 2},
		"states of ten millions":       {body: states, days: year, records: 10_000_000, groups: true, all: true, buckets: 3},
		"states of a part of the year": {body: states, days: [2]string{"2025-10-01", "2026-01-31"}, records: 10_000_000,
			groups: true, all: true, buckets: 1},
		"records of ten millions": {body: counted, days: year, records: 10_000_000, final: true, groups: true, buckets: 3},
		"pairs of ten millions, filtered": {days: year, records: 10_000_000, groups: true, buckets: 1,
			body: pairs + `,"filters":[{"member":"activity_type","op":"eq","value":"initiated"}]`},
		"pairs of ten millions, by day": {body: pairs + `,"dimensions":["day"]`, days: year, records: 10_000_000,
			buckets: 1},
		"pairs of a month of ten millions": {body: pairs, days: month, records: 10_000_000, groups: true, buckets: 1},
		"states of ten millions, by agent": {body: states + `,"dimensions":["agent_id"]`, days: year, records: 10_000_000,
			buckets: 1},
	} {
		f := Facts{AsOf: asOf, Conflicts: c.conflicts, Records: c.records}
		p := needs(t, c.body, c.days[0], c.days[1], "UTC").Plan(f)
		if p.Final != c.final || p.PairGroups != c.groups || p.AllVersions != c.all || p.HashBuckets != c.buckets {
			t.Errorf("%s: final %t, groups %t, all versions %t, %d buckets", name,
				p.Final, p.PairGroups, p.AllVersions, p.HashBuckets)
		}
	}
}

// Rules 1 and 9: what pays from how many records on.
func TestThresholds(t *testing.T) {
	const (
		month    = "2026-01-01"
		year     = "2025-02-01"
		byType   = runs + `,"dimensions":["user_type"]`
		ofPerson = `{"member":"user_identifier","op":"eq","value":"ada@example.com"}]`
	)
	for name, c := range map[string]struct {
		body, start   string
		records       uint64
		rollup, joins bool
	}{
		"few in a year":             {runs, year, aggregatesFrom - 1, false, false},
		"many in a year":            {runs, year, aggregatesFrom, true, false},
		"as many, few in a month":   {runs, month, aggregatesFrom, false, false},
		"few, by agent":             {byAgent, year, aggregatesFrom - 1, false, false},
		"many, by agent":            {byAgent, year, aggregatesFrom, true, false},
		"few, by day":               {byDay, year, aggregatesFrom - 1, false, false},
		"many, by day":              {byDay, year, aggregatesFrom, true, false},
		"few, with another key":     {byType, year, RollupFrom - 1, false, false},
		"many, with another key":    {byType, year, RollupFrom, true, false},
		"few initiators":            {initiators, year, RollupFrom - 1, false, false},
		"many initiators":           {initiators, year, RollupFrom, true, false},
		"few, without a projection": {byDay + `,"filters":[` + ofPerson, year, RollupFrom - 1, false, false},
		"many, without one":         {byDay + `,"filters":[` + ofPerson, year, RollupFrom, true, false},
		"not in the rollup":         {pairs, year, RollupFrom - 1, false, false},
		"few in a month of many":    {runs, month, rollupFromAll - 1, false, false},
		"very many, in whatever":    {runs, month, rollupFromAll, true, false},
		"many in half a year":       {runs, "2025-08-02", 2*aggregatesFrom + 3000, true, false},
		"few in half a year":        {runs, "2025-08-02", 2*aggregatesFrom - 3000, false, false},
		"states of few":             {states, month, windowFrom - 1, false, false},
		"states of many":            {states, month, windowFrom, false, true},
		"states of many, of a year": {states, year, RollupFrom, true, false},
		"no states of many":         {pairs, month, windowFrom, false, false},
	} {
		n := needs(t, c.body, c.start, "2026-01-31", "UTC")
		if n.rollupPays(c.records) != c.rollup || n.joinsWindow(c.records) != c.joins {
			t.Errorf("%s: rollup %t, window %t", name, n.rollupPays(c.records), n.joinsWindow(c.records))
		}
	}
}

// Rule 11.
func TestOneThread(t *testing.T) {
	for name, c := range map[string]struct {
		body, start string
		records     uint64
		want        bool
	}{
		"few":                     {runs, "2026-01-01", 0, true},
		"few in a month":          {runs, "2026-01-01", 500_000, true},
		"many in a month":         {runs, "2026-01-01", 700_000, false},
		"few in a year":           {runs, "2025-02-01", oneThreadBelow - 1, true},
		"many in a year":          {runs, "2025-02-01", oneThreadBelow, false},
		"states of all of many":   {states, "2026-01-01", oneThreadBelow, false},
		"states of all of a few":  {states, "2026-01-01", oneThreadBelow - 1, true},
		"more than a year at all": {runs, "2025-01-31", oneThreadBelow, false},
	} {
		p := needs(t, c.body, c.start, "2026-01-31", "UTC").Plan(Facts{AsOf: asOf, Records: c.records})
		if p.OneThread != c.want {
			t.Errorf("%s: %t", name, p.OneThread)
		}
	}
}

// Rule 7.
func TestPackedDays(t *testing.T) {
	const long, short = "2025-10-24", "2025-10-25" // 100 days, and one less
	for name, c := range map[string]struct {
		body, start string
		options     Options
		want        bool
	}{
		"a long range": {initiators + `,"dimensions":["day"]`, long, Options{}, true},
		"with a sum": {initiators[:len(initiators)-1] + `,"run_count"],"dimensions":["day"]`, long, Options{},
			true},
		"a short one":            {initiators + `,"dimensions":["day"]`, short, Options{}, false},
		"with another dimension": {initiators + `,"dimensions":["day","agent_id"]`, long, Options{}, false},
		"by another one":         {initiators + `,"dimensions":["user_type"]`, long, Options{}, false},
		"totals":                 {initiators, long, Options{}, false},
		"nobody is counted":      {byDay, long, Options{NoAggregates: true}, false},
		"by person":              {byPerson, long, Options{}, false},
		"switched off":           {initiators + `,"dimensions":["day"]`, long, Options{NoPackedDays: true}, false},
	} {
		p := needs(t, c.body, c.start, "2026-01-31", "UTC").Plan(with(large, func(f *Facts) { f.Options = c.options }))
		if p.PackedDays != c.want {
			t.Errorf("%s: %t", name, p.PackedDays)
		}
	}
}

// The smallest projection with all keys is used where the range consists of its spans of time, or is long and has some
// of them; where days are distinguished, only if no day begins within a span.
func TestProjections(t *testing.T) {
	for name, c := range map[string]struct{ body, start, end, zone, want string }{
		"days of whole hours": {byDay, "2026-01-01", "2026-01-31", "Europe/Stockholm", "by_quarter"},
		"days of quarters": {runs + `,"dimensions":["day","user_type"]`, "2026-01-01", "2026-01-01",
			"Asia/Kathmandu", "by_user_type"},
		"days that begin within hours": {runs + `,"dimensions":["day","agent_id"]`, "2026-01-01", "2026-06-30",
			"Asia/Kathmandu", ""},
		"days that begin within hours in summer": {runs + `,"dimensions":["day","agent_id"]`, "1944-01-01", "1944-12-31",
			"America/Barbados", ""}, // at 3:30, from 5:00 on 10 April to 6:00 on 10 September, in UTC
		"clocks are changed within a quarter": {byDay, "2010-03-01", "2010-03-31", "Asia/Gaza", ""}, // at 00:01
		"range begins within an hour":         {byAgent, "2026-01-01", "2026-01-31", "Asia/Kathmandu", ""},
		"long, begins within an hour":         {byAgent, "2026-01-01", "2026-06-30", "Asia/Kathmandu", "by_agent"},
		"whole weeks":                         {initiators, "2026-01-01", "2026-01-28", "UTC", "by_initiator_key"},
		"many whole weeks":                    {initiators, "2026-01-01", "2026-06-03", "UTC", "by_initiator_key"},
		"a few weeks with edges":              {initiators, "2025-12-31", "2026-01-29", "UTC", ""},
		"many weeks with edges":               {initiators, "2025-12-31", "2026-06-04", "UTC", "by_initiator_key"},
		"days of whole weeks":                 {initiators + `,"dimensions":["day"]`, "2026-01-01", "2026-01-28", "UTC", ""},
		"one of the days of some weeks": {initiators + `,"filters":[{"member":"day","op":"eq","value":"2026-01-02"}]`,
			"2026-01-01", "2026-01-28", "UTC", ""},
		"weeks before 1970": {initiators, "1969-12-25", "1969-12-31", "UTC", "by_initiator_key"},
	} {
		got := ""
		if p := needs(t, c.body, c.start, c.end, c.zone).Plan(large); p.Projection != nil {
			got = p.Projection.Name
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// A page probably has all rows if it has room for every combination of values, possibly if it has for each dimension.
func TestFitsPage(t *testing.T) {
	const dayAndType = runs + `,"dimensions":["day","user_type"]`
	for body, want := range map[string][2]bool{ // of a range of ten days
		byDay + `,"limit":11`:      {true, true},
		byDay + `,"limit":5`:       {false, false},
		byPerson + `,"limit":500`:  {false, false},
		dayAndType + `,"limit":55`: {true, true},
		dayAndType + `,"limit":54`: {false, true},
		dayAndType + `,"limit":10`: {false, false},
	} {
		n := needs(t, body, "2026-03-01", "2026-03-10", "UTC")
		if probably, possibly := n.fitsPage(); probably != want[0] || possibly != want[1] {
			t.Errorf("%s fits probably: %t, possibly: %t, want %v", body, probably, possibly, want)
		}
	}
}
