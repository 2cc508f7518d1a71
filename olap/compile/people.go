package compile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/runlens/runlens/olap/catalog"
	"github.com/runlens/runlens/schema"
)

// keyInitiatorKey is the key of a rollup table that stands for the identifier and the name of who started a run.
const keyInitiatorKey = "initiator_key"

// The initiator's part of a initiator_key as keys: three narrow ones, the day among them, share 16 bytes, for which
// ClickHouse groups twice as fast as for more.
var initiatorKeys = []string{"f_initiator", "f_initiator_high"}

// byInitiatorKey reports whether initiator_keys are added up whose groups are people.
func (p *planned) byInitiatorKey() bool {
	return p.rollup != nil && slices.ContainsFunc(p.Query.Dimensions, func(d *catalog.Dimension) bool { return rollupKey(d) == keyInitiatorKey })
}

// byInitiator reports whether initiator_keys are added up otherwise.
func (p *planned) byInitiator() bool {
	return slices.Contains(p.rollupKeys, keyInitiatorKey) && !p.byInitiatorKey()
}

// perInitiatorKey adds up by initiator_key, or by its initiator, besides what is grouped by.
func (w *printer) perInitiatorKey(from string) string {
	keys := w.signedKeys()
	selected := slices.Clone(keys)
	for _, name := range w.summed() {
		selected = append(selected, "sum(s_"+name+") AS s_"+name)
	}
	return "SELECT\n    " + strings.Join(selected, ",\n    ") + "\nFROM\n(\n" + indent(from) + "\n) AS r\nGROUP BY " + strings.Join(keys, ", ")
}

// known are the initiator_keys of the organization with the identifiers and names that they stand for. Those of rollup rows
// are stored before the rows are; the other ones come with what changed.
func (w *printer) known() string {
	texts := "SELECT initiator_key AS f_initiator_key, CAST(initiator_identifier, 'Nullable(String)') AS f_user_identifier, initiator_name AS f_user_name\nFROM"
	known := texts + " " + schema.TableInitiatorKeys + "\nWHERE " + ofOrganization
	switch w.Changes {
	case DeltaInline:
		known += "\nUNION ALL\n" + texts + "\n(\n" + indent(schema.InitiatorKeys(w.stored())) + "\n)"
	case DeltaCached:
		columns := []string{keyInitiatorKey, "initiator_identifier", "initiator_name"}
		w.changeColumns = append(w.changeColumns, columns...)
		known += "\nUNION ALL\n" + texts + "\n(\n" + indent("SELECT DISTINCT "+strings.Join(columns, ", ")+
			"\nFROM "+schema.TableDelta+"\nWHERE isNotNull(initiator_identifier)") + "\n)"
	}
	return known
}

// named are sums by initiator_key with the identifiers and names that the initiator_keys stand for. Should one be missing, that is
// an error: people must not fall into the group without an identifier.
func (w *printer) named(from string) string {
	sql := "SELECT *\nFROM\n(\n" + indent(w.perInitiatorKey(from)) + "\n) AS r\nANY LEFT JOIN\n(\n" + indent(w.known()) + "\n) AS t USING (f_initiator_key)" +
		"\nWHERE NOT throwIf(f_initiator_key != 0 AND isNull(f_user_identifier))"
	if w.After != nil {
		sql += "\n    AND " + w.behind()
	}
	return sql
}

// noSharedKey is the condition that every initiator key stands for one text; else the statement fails with
// SharedKeysMessage. Names that are refreshed while the statement runs are among those stored since. The set of an IN
// is read in the statement's snapshot, a scalar subquery is not.
func (w *printer) noSharedKey() string {
	shared := schema.AnySharedKey(ofOrganization, schema.InitiatorKeys(w.stored()))
	return "NOT throwIf(1 IN (\n" + indent(shared) + "\n), '" + SharedKeysMessage + "')"
}

// names are the companions of the groups of people.
func (w *printer) names() (selected []string) {
	for _, d := range w.Query.Dimensions {
		for _, c := range d.Companions {
			if c.Field != "" {
				// As in groups; a name counts if records with it are left.
				selected = append(selected, fmt.Sprintf("if(isNull(%s), NULL, maxIf(f_%s, s_%s > 0)) AS n_%s", keyOf(d), c.Field, w.rollup.Records, c.Name))
			}
		}
	}
	return selected
}
