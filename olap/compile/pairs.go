package compile

import (
	"fmt"
	"slices"
	"time"

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
	add := func(sql, name string) { ofAll, names = append(ofAll, sql+" AS "+name), append(names, name) }
	for _, f := range w.RunFields {
		ofPair = append(ofPair, ofRun(f, "max(run_state)"))
	}
	if w.AsOf.IsZero() {
		ofPair = append(ofPair, "max("+storedAt+") AS p_first_stored_at")
		add("max(p_first_stored_at)", newestStored)
	}
	for _, m := range w.Aggregates {
		name := "m_" + m.Name
		switch {
		case !m.Pairs: // an additive one: the pairs' values are summed
			ofPair = append(ofPair, m.Aggregate+" AS p_"+m.Name)
			add("sum(p_"+m.Name+")", name)
		case m.When == "":
			add("count()", name)
		case slices.ContainsFunc(m.Fields, func(name string) bool { return w.Source.Field(name).FromRun }):
			add("countIf("+m.When+")", name)
		default:
			add(fmt.Sprintf("countIf(bitTest(p_bits, %d))", len(bits)), name)
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
	pairs := w.records()
	if len(w.RunFields) > 0 {
		pairs.With = nil // the state is that of a pair
	}
	pairs.Columns, pairs.Group = append([]string{"f_pair"}, ofPair...), []string{"f_pair"}
	all := sql.Select{Columns: ofAll, From: sql.Query(pairs).As("p")}
	if w.HashBuckets == 1 {
		return all
	}
	return w.sumOfBuckets(names, all)
}

// hashBuckets is the table of which bucket is counted next, and what was counted in the one before.
const hashBuckets = "hash_buckets"

// sumOfBuckets sums what is counted in each hash bucket of the runs (inBucket). A pair has one run, so that no two
// buckets count the same. ClickHouse evaluates a recursive query step by step, and each step reads the rows of the last
// one only: the number of the next bucket. So only one bucket's hash tables exist at a time.
func (w *printer) sumOfBuckets(names []string, counted sql.Select) sql.Select {
	none, next, sums := []string{"toUInt16(0) AS bucket"}, []string{"toUInt16(bucket + 1)"}, []string{}
	for _, name := range names {
		zero, sum := "toUInt64(0)", "sum"
		if name == newestStored {
			zero, sum = instant(time.UnixMilli(0)), "max"
		}
		none, next = append(none, zero+" AS "+name), append(next, "c."+name)
		sums = append(sums, sum+"("+name+") AS "+name)
	}
	buckets := sql.Union{
		{Columns: none},
		{
			Columns: next, From: sql.Sent(hashBuckets), Where: []string{"bucket < " + number(int64(w.HashBuckets))},
			Joins: []sql.Join{{Kind: "CROSS", From: sql.Query(counted).As("c")}},
		}}
	return sql.Select{
		With:    []string{"RECURSIVE " + hashBuckets + " AS" + sql.In(buckets)},
		Columns: sums, From: sql.Sent(hashBuckets),
	}
}
