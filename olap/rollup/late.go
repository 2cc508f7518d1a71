package rollup

import (
	"context"
	"fmt"
	"time"

	"github.com/runlens/runlens/schema"
)

// TakeOutLate has the refresher look whether the rows that it is about to refresh are of people who were purged before,
// and should have stayed out: what a writer read before the purge, stored after it, and didn't take out again, because
// it died. takeOut takes them out of the store, of event clocks up to until, inclusive. It is called without a claim,
// and may take a lease. While it fails, the watermark does not move, so that no such row is missed. The rows of a purge
// that began later are taken out by that purge.
func (s *Refresher) TakeOutLate(
	takeOut func(ctx context.Context, organization schema.OrganizationID, identifier string, until time.Time) error,
) {
	s.takeOut = takeOut
}

// takeOutLate reports whether it had anything taken out of the rows that were stored in the span.
func (s *Refresher) takeOutLate(ctx context.Context, from, until time.Time) (found bool, err error) {
	var listed uint64
	if err := s.conn.QueryRow(ctx, "SELECT count() FROM "+schema.TablePurgedPeople).Scan(&listed); err != nil {
		return false, fmt.Errorf("rollup: read the list of purged people: %w", err)
	}
	if listed == 0 {
		return false, nil
	}
	const key = "(organization_id, occurred_at, attribution_id)"
	var people []struct {
		Organization string    `ch:"organization"`
		Identifier   string    `ch:"identifier"`
		Until        time.Time `ch:"last"`
	}
	err = s.conn.Select(inserting(ctx, nil), &people, "SELECT organization, identifier, max(until) AS last FROM ("+
		"SELECT toString(organization_id) AS organization, user_identifier AS identifier, occurred_at AS event_clock FROM "+
		schema.TableAttributions+" WHERE "+key+" IN (SELECT "+key[1:len(key)-1]+" FROM "+schema.TableAttributions+
		" WHERE "+within("first_stored_at")+") UNION ALL SELECT toString(organization_id),"+
		" assumeNotNull(tupleElement(record, 'initiator_identifier')), created_at FROM "+schema.TableRuns+
		" WHERE "+within("last_stored_at")+" AND isNotNull(tupleElement(record, 'initiator_identifier'))"+
		") AS stored INNER JOIN ("+schema.PurgedPeople+") AS people ON people.person = "+
		schema.PurgedPerson("stored.organization", "stored.identifier")+
		" WHERE event_clock <= until GROUP BY organization, identifier ORDER BY organization, identifier",
		span(from, until)...)
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
