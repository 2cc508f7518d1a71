package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agext/levenshtein"

	"github.com/runlens/runlens/cmd/internal/members"
	"github.com/runlens/runlens/cmd/internal/output"
	"github.com/runlens/runlens/http/client"
)

// memberNames are those of a model's members.
type memberNames struct {
	metrics, dimension []string
	companions         map[string]string // to their dimensions
}

func namesOf(m client.Model) memberNames {
	all := memberNames{companions: make(map[string]string)}
	for _, metric := range m.Metrics {
		all.metrics = append(all.metrics, metric.Name)
	}
	for _, dimension := range m.Dimensions {
		all.dimension = append(all.dimension, dimension.Name)
		for _, companion := range dimension.Companions {
			all.companions[companion.Name] = dimension.Name
		}
	}
	return all
}

// unknownMember says what the name may have meant, and what there is.
func unknownMember(c *client.Catalog, q client.Query, name string) string {
	model := members.ModelOf(c, q.Model)
	if model.Name == "" {
		return ""
	}
	m := namesOf(model)
	if dimension, ok := m.companions[name]; ok {
		return fmt.Sprintf("%s is no member; it comes along with the dimension %s", name, dimension)
	}
	for _, other := range c.Models {
		all := namesOf(other)
		if slices.Contains(slices.Concat(all.metrics, all.dimension), name) {
			return fmt.Sprintf("%s has no %s; it is a member of the other model: --model %s",
				q.Model, name, output.Quoted(other.Name))
		}
	}
	candidates := m.dimension
	kind := "dimensions"
	if slices.Contains(q.Metrics, name) {
		candidates, kind = m.metrics, "metrics"
	}
	guess := "; "
	if near := nearest(name, slices.Concat(candidates, m.metrics, m.dimension)); near != "" {
		guess = "; did you mean " + near + "? "
	}
	return fmt.Sprintf("unknown member %s%s%s has the %s %s", name, guess, q.Model, kind, strings.Join(candidates, ", "))
}

// misplaced explains a member that exists and stands in the wrong place, and the other faults of a list.
func misplaced(c *client.Catalog, q client.Query, field string, n int) string {
	if field == "model" {
		var names []string
		for _, m := range c.Models {
			names = append(names, m.Name)
		}
		return fmt.Sprintf("there is no model %q; there are %s", q.Model, strings.Join(names, " and "))
	}
	model := members.ModelOf(c, q.Model)
	m := namesOf(model)
	switch {
	case model.Name == "":
		return ""
	case field == "metrics" && n < 0:
		return fmt.Sprintf("there are %d metrics; a query has 1 to 16", len(q.Metrics))
	case field == "metrics" && n < len(q.Metrics):
		return inList(q.Metrics, n, m.dimension, "is a dimension, not a metric")
	case field == "dimensions" && n >= 0 && n < len(q.Dimensions):
		return inList(q.Dimensions, n, m.metrics, "is a metric, not a dimension")
	case field == "filters" && n >= 0 && n < len(q.Filters):
		return fmt.Sprintf("%s is a metric, and filters are on dimensions only: %s",
			q.Filters[n].Member, strings.Join(m.dimension, ", "))
	case field == "order" && len(q.Dimensions) == 0:
		return "a query without dimensions has one row, so it takes no order"
	case field == "order" && n >= 0 && n < len(q.Order):
		order := make([]string, len(q.Order))
		for i, term := range q.Order {
			order[i] = term.Member
		}
		selected := slices.Concat(q.Dimensions, q.Metrics)
		if slices.Contains(selected, order[n]) {
			return inList(order, n, nil, "")
		}
		return fmt.Sprintf("cannot order by %s, which is not selected: %s", order[n], strings.Join(selected, ", "))
	}
	return ""
}

// inList explains the element n of a list: it is a repeat, or one of the wrong kind.
func inList(list []string, n int, wrong []string, reason string) string {
	switch {
	case slices.Contains(list[:n], list[n]):
		return list[n] + " is named twice"
	case slices.Contains(wrong, list[n]):
		return list[n] + " " + reason
	case list[n] == "":
		return "a name is empty"
	}
	return ""
}

// shortest is how many letters a beginning has that says which name was meant.
const shortest = 3

// nearest is the candidate that is a few letters away from a name, a letter more if the first one is right; else the
// first one that begins with the name, as agent_id with agent; empty where none is.
func nearest(name string, candidates []string) string {
	if name == "" {
		return ""
	}
	best, distance := "", max(len(name)/3, 1)+1
	for _, candidate := range candidates {
		if candidate == "" { // as the name of an agent may be
			continue
		}
		d := levenshtein.Distance(strings.ToLower(name), strings.ToLower(candidate), nil)
		if strings.EqualFold(name[:1], candidate[:1]) {
			d--
		}
		if d < distance {
			best, distance = candidate, d
		}
	}
	for _, candidate := range candidates {
		if best == "" && len(name) >= shortest && strings.HasPrefix(strings.ToLower(candidate), strings.ToLower(name)) {
			best = candidate
		}
	}
	return best
}
