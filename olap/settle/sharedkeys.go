package settle

import (
	"context"
	"fmt"
	"time"

	"github.com/runlens/runlens/schema"
)

// markSharedKeys keeps which of the initiator keys of the rows that are about to be settled stand for two texts. It
// follows nameStarters and precedes the rows, so that a query finds a shared key in the marks or in the delta. Marks of
// rows that nobody settles in the end cost time, and change no answer.
func (c *claim) markSharedKeys(ctx context.Context, from, until time.Time) error {
	texts := schema.Starters(within(schema.SettledOf(schema.TableRuns).StoredAt))
	err := c.conn.Exec(inserting(ctx, nil), "INSERT INTO "+schema.TableSharedKeys+" (organization_id, initiator)"+
		" SELECT organization_id, initiator FROM ("+schema.SharedKeys(texts)+") WHERE "+c.fence,
		span(from, until)...)
	if err != nil {
		return fmt.Errorf("settle: mark shared initiator keys: %w", err)
	}
	return nil
}

// checkSharedKeys looks for initiator keys that stand for two texts and are not marked.
func (l *Lease) checkSharedKeys(ctx context.Context) (found []Difference, err error) {
	texts := "SELECT organization_id, starter, initiator_identifier, initiator_name FROM " + schema.TableStarters
	rows, err := l.conn.Query(ctx, "SELECT toString(organization_id), toInt64(count()) FROM ("+schema.SharedKeys(texts)+")"+
		" WHERE (organization_id, initiator) NOT IN (SELECT organization_id, initiator FROM "+schema.TableSharedKeys+")"+
		" GROUP BY organization_id ORDER BY organization_id")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		d := Difference{Table: schema.TableSharedKeys}
		if err := rows.Scan(&d.Organization, &d.Records); err != nil {
			return nil, err
		}
		found = append(found, d)
	}
	return found, rows.Err()
}
