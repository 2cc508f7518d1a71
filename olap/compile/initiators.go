package compile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/runlens/runlens/olap/plan"
	"github.com/runlens/runlens/schema"
)

// The identifier's part of an initiator key as keys: three narrow ones, the day among them, share 16 bytes, for which
// ClickHouse groups twice as fast as for more.
var initiatorKeys = []string{"f_initiator", "f_initiator_high"}

// perInitiatorKey aggregates by initiator key, or by the identifier's part of it, in addition to the dimensions.
func (w *printer) perInitiatorKey(from string) string {
	keys := w.signedKeys()
	selected := slices.Clone(keys)
	for _, name := range w.summed() {
		selected = append(selected, "sum(s_"+name+") AS s_"+name)
	}
	return "SELECT\n    " + strings.Join(selected, ",\n    ") + "\nFROM\n(\n" + indent(from) + "\n) AS r" +
		"\nGROUP BY " + strings.Join(keys, ", ")
}

// texts are the initiator keys of the organization with the identifiers and names that they represent. Those of the
// rollup's rows are stored before the rows are; the other ones come with an inline delta.
func (w *printer) texts() string {
	const texts = "SELECT initiator_key AS f_initiator_key," +
		" CAST(initiator_identifier, 'Nullable(String)') AS f_user_identifier, initiator_name AS f_user_name\nFROM"
	known := texts + " " + schema.TableInitiatorKeys + "\nWHERE " + schema.OfOrganization
	if stored := w.textsStored(); stored != "" {
		known += "\nUNION ALL\n" + texts + "\n(\n" + indent(stored) + "\n)"
	}
	return known
}

// textsStored are the initiator keys with their texts of an inline delta; empty where there is none.
func (w *printer) textsStored() string {
	if w.Delta != plan.DeltaInline {
		return ""
	}
	return schema.InitiatorKeys(w.stored())
}

// withTexts are sums by initiator key with the texts that the keys represent. A key without a text is an error: people
// must not fall into the group without an identifier.
func (w *printer) withTexts(from string) string {
	sql := "SELECT *\nFROM\n(\n" + indent(w.perInitiatorKey(from)) + "\n) AS r" +
		"\nANY LEFT JOIN\n(\n" + indent(w.texts()) + "\n) AS t USING (f_initiator_key)" +
		"\nWHERE NOT throwIf(f_initiator_key != 0 AND isNull(f_user_identifier))"
	if w.After != nil {
		sql += "\n    AND " + w.afterCursor()
	}
	return sql
}

// noSharedKey is the condition that every initiator key represents one text; else the statement fails with
// SharedKeysMessage. Texts that are written while the statement runs are among those of the delta. The set of an IN is
// read in the statement's snapshot, a scalar subquery is not.
func (w *printer) noSharedKey() string {
	return "NOT throwIf(1 IN (\n" + indent(schema.AnySharedKey(w.textsStored())) + "\n), '" + SharedKeysMessage + "')"
}

// personNames are the companions of the groups of people.
func (w *printer) personNames() (selected []string) {
	for _, d := range w.Query.Dimensions {
		for _, c := range d.Companions {
			if c.Field != "" {
				// As in groups; a name counts if records with it are left.
				selected = append(selected, fmt.Sprintf("if(isNull(%s), NULL, maxIf(f_%s, s_%s > 0)) AS n_%s",
					keyOf(d), c.Field, w.Rollup.Records, c.Name))
			}
		}
	}
	return selected
}
