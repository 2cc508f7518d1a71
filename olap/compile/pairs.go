package compile

import (
	"fmt"
	"strings"
)

// maxPairConditions is how many bits a pair has.
const maxPairConditions = 8

// totalsOfPairs is the layer of aggregates of a totals query that counts pairs. A distinct count keeps a
// hash table of its own, so that every further metric costs as much as the first one. Here all share
// one: a pair is a group with one bit for each metric's condition, set when one of its rows
// satisfies it. (With dimensions the keys would get wide, and distinct counts are faster.)
func (w *printer) totalsOfPairs(from string) string {
	var ofPair, ofAll, bits []string
	for _, m := range w.aggregates {
		switch {
		case !m.Pairs: // an additive one: the pairs' values add up
			ofPair = append(ofPair, m.Aggregate+" AS p_"+m.Name)
			ofAll = append(ofAll, "sum(p_"+m.Name+") AS m_"+m.Name)
		case m.When == "":
			ofAll = append(ofAll, "count() AS m_"+m.Name)
		default:
			ofAll = append(ofAll, fmt.Sprintf("countIf(bitTest(p_bits, %d)) AS m_%s", len(bits), m.Name))
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
	ofPair = append([]string{"f_pair"}, ofPair...)
	return "SELECT\n    " + strings.Join(ofAll, ",\n    ") + "\nFROM\n(\n" +
		indent("SELECT\n    "+strings.Join(ofPair, ",\n    ")+"\nFROM\n"+from+"\nGROUP BY f_pair") + "\n) AS p"
}
