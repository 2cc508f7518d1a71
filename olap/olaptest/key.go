package olaptest

import (
	"slices"
	"strings"
)

// A Key is what a key sees of an organization, as its documentation says it; the zero Key sees all. Empty lists are no
// restriction. Whether a question is refused is not asked here.
type Key struct {
	Agents, People, Domains []string // ids in lower case; identifiers and domains as records have them
	MinPeople               int
}

// sees reports whether the key sees a row.
func (k Key) sees(r row) bool {
	has := func(list []string, value *string) bool {
		return len(list) == 0 || value != nil && slices.Contains(list, *value)
	}
	var domain *string
	if person := r.dimensions["user_identifier"]; person != nil {
		if at := strings.LastIndexByte(*person, '@'); at >= 0 {
			after := (*person)[at+1:]
			domain = &after
		}
	}
	return has(k.Agents, r.dimensions["agent_id"]) && has(k.People, r.dimensions["user_identifier"]) &&
		has(k.Domains, domain)
}

// shows reports whether the key is shown a group of rows: one with enough different people, of whom an automated
// initiator is none.
func (k Key) shows(group []row) bool {
	people := map[string]bool{}
	for _, r := range group {
		person, class := r.dimensions["user_identifier"], r.dimensions["user_type"]
		if person != nil && (class == nil || *class != "automated") {
			people[*person] = true
		}
	}
	return len(people) >= k.MinPeople
}
