package olaptest

import (
	"slices"
	"time"

	"github.com/google/uuid"
)

// A Truth is what the rows of a store are, state by state: each change that was acknowledged makes one more.
type Truth struct{ changes []change }

// A change is rows of one table, or that a person was purged.
type change struct {
	records              Records
	stored               time.Time // by the store's clock, rather earlier than later
	organization, person string
}

// Store adds rows of one table, which were stored at an instant of the store's clock or a little later.
func (t *Truth) Store(records Records, stored time.Time) {
	t.changes = append(t.changes, change{records: records, stored: stored})
}

// Purge adds that a person was taken out of an organization: its attribution records are gone, and the runs that it
// started are nobody's.
func (t *Truth) Purge(organization, person string) {
	t.changes = append(t.changes, change{organization: organization, person: person})
}

// States is how many changes there were.
func (t *Truth) States() int { return len(t.changes) }

// A Boundary says which records an answer has: those first stored by the first so many changes, and, where the store's
// clock was set back since, all with a stamp until AsOf. None was first stored after AsOf.
type Boundary struct {
	Changes int
	AsOf    time.Time
	SetBack bool
}

// has reports whether a change's rows are within the boundary.
func (b Boundary) has(number int, c change) bool {
	return (b.SetBack || number < b.Changes) && !c.stored.After(b.AsOf)
}

// A place is a record under an event clock.
type place struct {
	id uuid.UUID
	at int64
}

// Evaluate answers a query whose counted records are within a boundary, as they are after so many changes. Names and
// statuses are those current then (contract 4.1).
func (t *Truth) Evaluate(organization string, q Query, within Boundary, after int) [][]any {
	var runs []Run
	var records Records
	type attribution struct {
		Attribution
		stored time.Time
	}
	var attributions []attribution
	inside := map[place]bool{}
	for n, c := range t.changes[:after] {
		isInside := within.has(n, c)
		for _, r := range c.records.Runs {
			if r.Organization == organization {
				runs = append(runs, r)
				key := place{r.ID, r.CreatedAt.UnixMilli()}
				inside[key] = inside[key] || isInside
			}
		}
		for _, a := range c.records.Attributions {
			if a.Organization == organization {
				attributions = append(attributions, attribution{a, c.stored})
				key := place{a.ID, a.OccurredAt.UnixMilli()}
				inside[key] = inside[key] || isInside
			}
		}
		records.Agents = append(records.Agents, c.records.Agents...)
		if c.person == "" || c.organization != organization {
			continue
		}
		attributions = slices.DeleteFunc(attributions, func(a attribution) bool { return a.Identifier == c.person })
		for i, r := range runs {
			if r.Identifier != nil && *r.Identifier == c.person {
				runs[i].Identifier, runs[i].Name = nil, nil
			}
		}
	}
	records.Runs = runs
	if q.Model == "agent_runs" {
		for _, r := range newestRuns(records, organization) {
			if !inside[place{r.ID, r.CreatedAt.UnixMilli()}] {
				records.Runs = slices.DeleteFunc(records.Runs, func(other Run) bool { return other.ID == r.ID })
			}
		}
	}
	// The copy stored first counts, also where the clock was set back.
	slices.SortStableFunc(attributions, func(a, b attribution) int { return a.stored.Compare(b.stored) })
	seen := map[uuid.UUID]bool{}
	for _, a := range attributions {
		if !seen[a.ID] && inside[place{a.ID, a.OccurredAt.UnixMilli()}] {
			records.Attributions = append(records.Attributions, a.Attribution)
		}
		seen[a.ID] = true
	}
	return Evaluate(records, organization, q)
}

// After are the rows of an answer that follow a row of it, as it was on the page before.
func After(rows [][]any, last []any, q Query) [][]any {
	if last == nil {
		return rows
	}
	return slices.DeleteFunc(slices.Clone(rows), func(r []any) bool { return compareRows(r, last, q) <= 0 })
}
