package main

import (
	"slices"

	"github.com/google/uuid"

	"github.com/runlens/runlens/cmd/internal/oracle"
)

// purgePerson forgets a person who was purged: the runs that it started are as they are stored now, and no further
// records name it, which would be rejected.
func (a *author) purgePerson(organization, person string) {
	a.truth.PurgePerson(organization, person)
	c := a.of(organization)
	c.people = slices.DeleteFunc(c.people, func(other string) bool { return other == person })
	for i := range c.runs {
		if r := &c.runs[i]; r.Identifier != nil && *r.Identifier == person {
			r.Identifier, r.Name = nil, nil
		}
	}
	var kept []oracle.Attribution
	for _, at := range c.records {
		if at.Identifier != person {
			kept = append(kept, at)
		}
	}
	c.records = kept
}

// purgeRuns draws runs and forgets them. They are to be purged.
func (a *author) purgeRuns(organization string, most int) (ids []uuid.UUID) {
	c := a.of(organization)
	for range min(most, len(c.runs)-1) {
		last := len(c.runs) - 1
		place := a.random.IntN(len(c.runs))
		ids = append(ids, c.runs[place].ID)
		c.runs[place] = c.runs[last]
		c.runs = c.runs[:last]
	}
	a.truth.PurgeRuns(organization, ids)
	return ids
}

func (a *author) purgeOrganization(organization string) {
	a.truth.PurgeOrganization(organization)
	delete(a.known, organization)
}
