package compile

import (
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/runlens/runlens/olap/catalog"
	"github.com/runlens/runlens/olap/query"
	"github.com/runlens/runlens/olap/value"
	"github.com/runlens/runlens/schema"
	"github.com/runlens/runlens/schema/sql"
)

// filter is the condition that a row's dimension has one of the filter's values (spec 4.2 rule 7).
func (w *printer) filter(name string, f query.Filter) string {
	switch f.Dimension.Kind {
	case catalog.Day:
		days := make([]int64, len(f.Days))
		for i, day := range f.Days {
			days[i] = int64(day) - FirstDay
		}
		return "f_day IN " + w.param(name, days)
	case catalog.AgentID:
		return w.agentFilter(name, f)
	case catalog.Identifier:
		if w.fromRollup() {
			return "f_initiator_key IN" + sql.In(sql.Select{
				Columns: []string{"f_initiator_key"}, From: w.texts(),
				Where: []string{"f_user_identifier IN " + w.param(name, f.Values)},
			})
		}
		fallthrough
	default:
		return shown(f.Dimension, "f_"+f.Dimension.Field) + " IN " + w.param(name, f.Values)
	}
}

// agentFilter takes every value as a slug, and UUIDs in any letter case as ids too: a slug may have their form, and
// spec 2.7 sets neither before the other. A slug names one agent: the agent that is not deleted and has it, otherwise
// the one deleted last (contract 4.6). The newest record decides between several, which the source should not have.
func (w *printer) agentFilter(name string, f query.Filter) string {
	var ids []string
	for _, value := range f.Values {
		if id, err := uuid.Parse(value); err == nil && len(value) == len(id.String()) {
			ids = append(ids, id.String())
		}
	}
	var conditions []string
	if len(ids) > 0 {
		w.param(name+"_ids", ids)
		conditions = append(conditions, "f_agent_id IN {"+name+"_ids:Array(UUID)}")
	}
	if !f.OfKey {
		conditions = append(conditions, "f_agent_id IN"+sql.In(sql.Select{
			Columns: []string{"argMax(agent_id, (isNull(tupleElement(latest, 'deleted_at'))," +
				" ifNull(tupleElement(latest, 'deleted_at'), tupleElement(latest, 'updated_at'))," +
				" tupleElement(latest, 'updated_at'), agent_id))"},
			From:  sql.Table(schema.TableAgents).Final(true),
			Where: []string{"tupleElement(latest, 'slug') IN " + w.param(name+"_slugs", f.Values)},
			Group: []string{"tupleElement(latest, 'slug')"},
		}))
	}
	return "(" + strings.Join(conditions, " OR ") + ")"
}

// afterCursor is the keyset condition: the rows whose group comes after the cursor's in the completed
// order. Null sorts last in both directions (contract 4.2), so nothing comes after null but, for an
// equal null, what the next term says.
func (w *printer) afterCursor() string {
	var alternatives, equal []string
	for i, term := range w.Order {
		name := fmt.Sprintf("after_%d", i)
		key := shown(term.Dimension, keyOf(term.Dimension))
		last := w.After[i]
		if last.Kind == value.Null {
			equal = append(equal, "isNull("+key+")")
			continue
		}
		var after string
		if last.Kind == value.Day {
			after = number(last.Number - FirstDay)
		} else {
			after = w.param(name, last.Text)
		}
		comparison := " > "
		if term.Descending {
			comparison = " < "
		}
		beyond := "(" + key + comparison + after + " OR isNull(" + key + "))"
		alternatives = append(alternatives, strings.Join(append(append([]string(nil), equal...), beyond), " AND "))
		equal = append(equal, key+" = "+after)
	}
	if len(alternatives) == 0 {
		return "false"
	}
	return "((" + strings.Join(alternatives, ") OR (") + "))"
}
