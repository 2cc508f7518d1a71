package oracle

import (
	"slices"
	"strings"
)

// A Key is what a key sees of an organization; the zero Key sees all. Empty lists are no restriction.
type Key struct {
	Agents, People, Domains []string // ids in lower case; identifiers and domains as records have them
	MinPeople               int      // how many different people a group has to have
}

// sees is whether the key sees a row.
func (org *organization) sees(k Key) func(*row) bool {
	text := func(number int32) string {
		if number < 0 {
			return ""
		}
		return org.texts.all[number]
	}
	return func(r *row) bool {
		person := text(r.identifier)
		return (len(k.Agents) == 0 || slices.Contains(k.Agents, text(r.agent))) &&
			(len(k.People) == 0 || slices.Contains(k.People, person)) &&
			(len(k.Domains) == 0 || slices.ContainsFunc(k.Domains,
				func(domain string) bool { return strings.HasSuffix(person, "@"+domain) }))
	}
}

// shown is the answer of a group: nothing where it has too few people, and null in a total.
func (org *organization) shown(q Query, key [most]int32, g *group) []any {
	switch {
	case len(g.people) >= q.Key.MinPeople:
		return org.present(q, key, g)
	case len(q.Dimensions) == 0:
		return make([]any, len(q.Metrics))
	}
	return nil
}
