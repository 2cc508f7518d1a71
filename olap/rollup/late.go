package rollup

import (
	"context"
	"fmt"
	"time"

	"github.com/runlens/runlens/schema"
	"github.com/runlens/runlens/schema/sql"
)

// TakeOutLate has the refresher look whether the rows that it is about to refresh are of people who were purged before,
// and should have stayed out: what a writer read before the purge, stored after it, and didn't take out again, because
// it died. takeOut takes them out of the store, of event clocks up to until, inclusive. It is called without a claim,
// and may make a change. While it fails, the watermark does not move, so that no such row is missed. The rows of a
// purge that began later are taken out by that purge.
func (s *Refresher) TakeOutLate(
	takeOut func(ctx context.Context, organization schema.OrganizationID, identifier string, until time.Time) error,
) {
	s.takeOut = takeOut
}

// takeOutLate reports whether it had anything taken out of the rows that were stored in the span.
func (s *Refresher) takeOutLate(ctx context.Context, from, until time.Time) (found bool, err error) {
	var listed uint64
	count := sql.Select{Columns: []string{"count()"}, From: refreshed(schema.TablePurgedPeople)}
	if err := s.conn.QueryRow(ctx, count.String()).Scan(&listed); err != nil {
		return false, fmt.Errorf("rollup: read the list of purged people: %w", err)
	}
	if listed == 0 {
		return false, nil
	}
	var people []struct {
		Organization string    `ch:"organization"`
		Identifier   string    `ch:"identifier"`
		Until        time.Time `ch:"last"`
	}
	err = s.conn.Select(inserting(ctx, nil), &people, late.String(), span(from, until)...)
	if err != nil {
		return false, fmt.Errorf("rollup: look for records of purged people: %w", err)
	}
	for _, p := range people {
		s.logger.Warn("taking out records of a purged person that were stored after the purge",
			"organization", p.Organization)
		if err := s.takeOut(ctx, schema.OrganizationID(p.Organization), p.Identifier, p.Until); err != nil {
			return true, fmt.Errorf("rollup: take out records of a purged person: %w", err)
		}
	}
	return len(people) > 0, nil
}

// late selects the purged people of whom rows were stored in a span.
var late = sql.Select{
	Columns: []string{"organization", "identifier", "max(until) AS last"},
	From: sql.Query(sql.Select{
		Columns: []string{"organization", "identifier", "event_clock",
			"arrayJoin(" + schema.PurgedPerson("organization", "identifier") + ") AS person"},
		From: sql.Query(sql.Union{
			{
				Columns: []string{"toString(organization_id) AS organization", "user_identifier AS identifier",
					"occurred_at AS event_clock"},
				From: refreshed(schema.TableAttributions),
				Where: []string{"(organization_id, occurred_at, attribution_id) IN" + sql.In(sql.Select{
					Columns: []string{"organization_id", "occurred_at", "attribution_id"},
					From:    refreshed(schema.TableAttributions), Where: []string{within(schema.TableAttributions)},
				})},
			},
			{
				Columns: []string{"toString(organization_id)",
					"assumeNotNull(tupleElement(record, 'initiator_identifier'))", "created_at"},
				From:  refreshed(schema.TableRuns),
				Where: []string{within(schema.TableRuns), "isNotNull(tupleElement(record, 'initiator_identifier'))"},
			},
		}),
	}).As("stored"),
	Joins: []sql.Join{{Kind: "INNER", From: sql.Query(schema.PurgedPeople).As("people"), On: "USING (person)"}},
	Where: []string{"event_clock <= until"},
	Group: []string{"organization", "identifier"}, Order: []string{"organization", "identifier"},
}
