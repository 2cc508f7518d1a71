package move

import (
	"context"
	"time"

	"github.com/runlens/runlens/olap/cells"
)

// leave is 10.
func (m *mover) leave(ctx context.Context) error {
	if m.to.at.Mover != m.number { // what is copied carries the condition that the row is this command's
		if err := m.to.become(ctx, m.subject, m.place(m.to.name, cells.Open)); err != nil {
			return err
		}
	}
	if err := m.from.become(ctx, m.subject, m.place(m.to.name, cells.Leaving)); err != nil {
		return err
	}
	organizations, err := m.organizations(ctx, &m.from)
	if err != nil {
		return err
	}
	if err := m.copy(ctx, organizations, time.Time{}, logs...); err != nil {
		return err
	}
	if err := m.purge(ctx, &m.from); err != nil {
		return err
	}
	if err := m.renew(ctx, &m.to); err != nil { // no copy comes later than a purge that waits for this
		return err
	}
	next := m.place(m.to.name, cells.Open)
	if err := m.from.become(ctx, m.subject, next); err != nil {
		return err
	}
	return m.o.Reached(Purged)
}
