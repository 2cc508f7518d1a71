package move

import (
	"context"
	"fmt"
	"time"

	"github.com/runlens/runlens/olap/snapshot"
)

// mostBehind is by how much a clock may be behind what it has to pass. The move waits for it while nobody may write.
const mostBehind = 10 * time.Second

// checkClocks returns the instant that both clocks have to pass before organizations are written in the new cell: what
// the old one's clock is, or their newest stamp where that clock was ahead once, and set back. It refuses a clock that
// is too far behind.
func (m *mover) checkClocks(ctx context.Context, organizations []string) (until time.Time, err error) {
	_, newest, err := m.counted(ctx, organizations)
	if err != nil {
		return until, err
	}
	if m.stamped.After(newest) { // counts may be lost with the power
		newest = m.stamped
	}
	old, err := snapshot.Now(ctx, m.from.conn)
	if err != nil {
		return until, err
	}
	now, err := snapshot.Now(ctx, m.to.conn)
	if err != nil {
		return until, err
	}
	if behind := old.Sub(now); behind > mostBehind {
		return until, fmt.Errorf("the clock of the cell %s is %v behind that of %s: set it first", m.to.name,
			behind.Round(time.Second), m.from.name)
	}
	for name, clock := range map[string]time.Time{m.from.name: old, m.to.name: now} {
		if newest.Sub(clock) > mostBehind {
			return until, fmt.Errorf("the cell %s has records of %s that were stored while its clock was ahead, the last ones "+
				"at %s, and the clock of the cell %s is at %s: they can be moved when it has passed that", m.from.name,
				m.subject, newest.Format(time.RFC3339), name, clock.Format(time.RFC3339))
		}
	}
	if newest.After(old) {
		return newest, nil
	}
	return old, nil
}

// passClock waits until the new cell's clock has passed that of the old one, and the stamps of all rows.
func (m *mover) passClock(ctx context.Context, organizations []string) error {
	until, err := m.checkClocks(ctx, organizations)
	for err == nil {
		var now time.Time
		if now, err = snapshot.Now(ctx, m.to.conn); err != nil || now.After(until) {
			return err
		}
		err = snapshot.Pause(ctx, poll)
	}
	return err
}
