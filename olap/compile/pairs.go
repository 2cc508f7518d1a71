package compile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/runlens/runlens/schema/sql"
)

// maxPairConditions is how many bits a pair has.
const maxPairConditions = 8

// totalsOfPairs is the layer of aggregates of a totals query that counts pairs. A distinct count keeps a
// hash table of its own, so that every further metric costs as much as the first one. Here all share
// one: a pair is a group with one bit for each metric's condition, set when one of its rows
// satisfies it. What the run's status decides is decided once for the pair, by the greatest state of its run, so that
// all versions of the runs may be joined; unless rows are counted, which they would repeat. (With dimensions the keys
// would get wide, and distinct counts are faster.)
func (w *printer) totalsOfPairs() sql.Select {
	var ofPair, ofAll, names, bits []string
	for _, f := range w.RunFields {
		ofPair = append(ofPair, ofRun(f, "max(run_state)"))
	}
	if w.AsOf.IsZero() {
		ofPair = append(ofPair, "max("+storedAt+") AS p_first_stored_at")
		ofAll, names = append(ofAll, "max(p_first_stored_at)"), append(names, newestStored)
	}
	for _, m := range w.Aggregates {
		names = append(names, "m_"+m.Name)
		switch {
		case !m.Pairs: // an additive one: the pairs' values are summed
			ofPair = append(ofPair, m.Aggregate+" AS p_"+m.Name)
			ofAll = append(ofAll, "sum(p_"+m.Name+")")
		case m.When == "":
			ofAll = append(ofAll, "count()")
		case slices.ContainsFunc(m.Fields, func(name string) bool { return w.Source.Field(name).FromRun }):
			ofAll = append(ofAll, "countIf("+m.When+")")
		default:
			ofAll = append(ofAll, fmt.Sprintf("countIf(bitTest(p_bits, %d))", len(bits)))
			bits = append(bits, fmt.Sprintf("bitShiftLeft(toUInt8(%s), %d)", m.When, len(bits)))
		}
	}
	if len(bits) > maxPairConditions {
		panic("compile: more conditions than bits") // the catalog has fewer
	}
	if len(bits) > 0 {
		// Not their sum, whose type and with it the hash table's entries would grow with every term.
		all := bits[0]
		for _, bit := range bits[1:] {
			all = "bitOr(" + all + ", " + bit + ")"
		}
		ofPair = append(ofPair, "groupBitOr("+all+") AS p_bits")
	}
	pairs := func(bucket string) sql.From {
		s := w.records(bucket)
		if len(w.RunFields) > 0 {
			s.With = nil // the state is that of a pair
		}
		s.Columns, s.Group = append([]string{"f_pair"}, ofPair...), []string{"f_pair"}
		return sql.Query(s).As("p")
	}
	if w.HashBuckets == 1 {
		return sql.Select{Columns: named(ofAll, names), From: pairs("")}
	}
	return w.sumOfBuckets(names, func(bucket string) sql.Select {
		return sql.Select{Columns: []string{"tuple(" + strings.Join(ofAll, ", ") + ")"}, From: pairs(bucket)}
	})
}

// sumOfBuckets sums what part counts in each hash bucket of the runs. A pair has one run, so that no two buckets count
// the same. ClickHouse evaluates scalar subqueries one after the other before it begins with the query around them, so
// that only one bucket's hash tables exist at a time.
func (w *printer) sumOfBuckets(names []string, part func(bucket string) sql.Select) sql.Select {
	parts := make([]string, w.HashBuckets)
	for i := range parts {
		parts[i] = sql.In(part(fmt.Sprintf("? %% %d = %d", w.HashBuckets, i)))
	}
	sums := make([]string, len(names))
	for i := range names {
		sums[i] = fmt.Sprintf("sum(tupleElement(part, %d))", i+1)
		if names[i] == newestStored {
			sums[i] = fmt.Sprintf("max(tupleElement(part, %d))", i+1)
		}
	}
	buckets := sql.Select{Columns: []string{"arrayJoin([" + strings.Join(parts, ",") + "]) AS part"}}
	return sql.Select{Columns: named(sums, names), From: sql.Query(buckets)}
}

// named are expressions with their names.
func named(expressions, names []string) []string {
	list := make([]string, len(names))
	for i := range names {
		list[i] = expressions[i] + " AS " + names[i]
	}
	return list
}
