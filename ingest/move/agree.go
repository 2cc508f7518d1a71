package move

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/runlens/runlens/ingest/purge"
	"github.com/runlens/runlens/olap/cells"
	"github.com/runlens/runlens/olap/rollup"
	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
	"github.com/runlens/runlens/schema/sql"
)

// boundary is an instant before which nothing is stored any more in the old cell: what is copied from now on has all of
// that, but for a clock that is set back, which the comparison finds.
func (m *mover) boundary(ctx context.Context) (time.Time, error) {
	inserts, err := snapshot.ReadInserts(ctx, m.from.conn)
	if err != nil {
		return time.Time{}, err
	}
	return inserts.Oldest.Add(-snapshot.ClockMargin), nil
}

// agree is 4. since is the boundary of the copy before it.
func (m *mover) agree(ctx context.Context, since time.Time) ([]string, error) {
	for cleared := false; ; {
		organizations, err := m.organizations(ctx, &m.from)
		if err != nil {
			return nil, err
		}
		// Counted first: what is stored after now, and not refreshed, is counted later, and all is done again.
		before, _, err := m.counted(ctx, organizations)
		if err != nil {
			return nil, err
		}
		now, err := m.checkClocks(ctx, organizations)
		if err != nil {
			return nil, err
		}
		// What began before 3 is seen there already, or soon, though it is not acknowledged.
		if _, err := snapshot.AwaitInserts(ctx, m.from.conn, now); err != nil {
			return nil, err
		}
		if err := m.refresh(ctx, now); err != nil {
			return nil, err
		}
		next, err := m.boundary(ctx)
		if err != nil {
			return nil, err
		}
		err = errors.Join(m.o.Secrets(ctx, m.from.conn, m.to.conn), m.o.Secrets(ctx, m.to.conn, m.from.conn))
		if err != nil {
			return nil, err
		}
		if err := m.copy(ctx, organizations, since, append(lists, records...)...); err != nil {
			return nil, err
		}
		if err := m.copyCheckpoints(ctx); err != nil {
			return nil, err
		}
		// A copy that is under way twice, and comes late the other time, might have what was taken out meanwhile.
		if err := m.renew(ctx, &m.to); err != nil {
			return nil, err
		}
		different, err := m.differs(ctx, organizations)
		if err != nil {
			return nil, err
		}
		after, _, err := m.counted(ctx, organizations)
		switch since = next; {
		case err != nil:
			return nil, err
		case before != after, m.stamped.After(now): // what was not acknowledged; an insert that fails is not counted
		case different == "":
			return organizations, nil
		case cleared:
			return nil, fmt.Errorf("the cells %s and %s differ in %s although all was copied twice; nothing is switched, "+
				"and what is stored meanwhile waits: run the command again", m.from.name, m.to.name, different)
		default:
			// Rows were taken out of the old cell, or replaced, after they had been copied.
			cleared, since = true, time.Time{}
			if err := m.clear(ctx); err != nil {
				return nil, err
			}
		}
	}
}

// refresh has the old cell refresh what it stored until an instant.
func (m *mover) refresh(ctx context.Context, now time.Time) error {
	conn := m.from.conn
	refresher := rollup.New(conn, m.o.Logger, m.o.Margin)
	refresher.TakeOutLate(func(ctx context.Context, o schema.OrganizationID, identifier string, until time.Time) error {
		return purge.Late(o, identifier, until).Run(ctx, conn, func(purge.Step) {})
	})
	for {
		if err := refresher.Refresh(ctx); err != nil {
			return err
		}
		log, err := snapshot.ReadLog(ctx, conn)
		if err != nil {
			return err
		}
		if !log.Leased && !log.Until.Before(now) {
			return nil
		}
		if err := snapshot.Pause(ctx, poll); err != nil {
			return err
		}
	}
}

// damage is 5. What arrived is found by its rows: counts of them may be lost with the power.
func (m *mover) damage(ctx context.Context) error {
	where := fmt.Sprintf("cityHash64(organization_id) %% %d = %d", cells.Slots, m.subject.Slot())
	if organization := m.subject.Organization(); organization != "" {
		where = fmt.Sprintf("cityHash64(organization_id) = %d", cells.Hash(organization))
	}
	var rows sql.Union
	for _, t := range schema.RollupTables {
		rows = append(rows, sql.Select{
			Distinct: true, Columns: []string{"organization_id"}, From: ofAll(t.Source), Where: []string{where},
		})
	}
	arrived := rows.String()
	return rollup.WithChange(ctx, m.to.conn, func(ctx context.Context, c *rollup.Change) error {
		if err := c.Damage(ctx, arrived); err != nil {
			return err
		}
		for _, t := range schema.RollupTables {
			if err := c.LeaveDamaged(ctx, t.Source, arrived); err != nil {
				return err
			}
		}
		return nil
	})
}

// clear takes out of the new cell what it has of the organizations, as long as they are arriving.
func (m *mover) clear(ctx context.Context) error {
	m.conflicting = 0
	return m.purge(ctx, &m.to)
}

// purge takes out what a cell has of the organizations, as long as its row is this command's.
func (m *mover) purge(ctx context.Context, s *side) error {
	organizations, err := m.organizations(ctx, s)
	if err != nil || len(organizations) == 0 {
		return err
	}
	ids := make([]schema.OrganizationID, len(organizations))
	for i, organization := range organizations {
		ids[i] = schema.OrganizationID(organization)
	}
	p := purge.Moved(s.fence(), s == &m.from, ids...)
	if err := p.Run(ctx, s.conn, func(purge.Step) {}); err != nil {
		return fmt.Errorf("cell %s: %w", s.name, err)
	}
	return s.check(ctx)
}
