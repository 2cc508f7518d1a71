package olap_test

import (
	"context"
	"time"

	"github.com/runlens/runlens/olap/rollup"
	"github.com/runlens/runlens/olap/snapshot"
)

// refresh refreshes what there is, or a part of it.
func (s *storm) refresh(m *machine) {
	name, refresher := "refresh", m.refresher
	if s.oneIn(4) {
		name, refresher = "refresh a part", rollup.New(m.held, quiet, rollup.Margin+time.Duration(s.IntN(30))*time.Second)
	}
	s.machine(name, m, func(ctx context.Context) error { return steps(ctx, refresher) }, s.resolve)
}

// steps refreshes as servers do.
func steps(ctx context.Context, r *rollup.Refresher) error {
	for more := true; more; {
		var err error
		if more, err = r.Step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// resolve notes that records that contradict each other were refreshed.
func (s *storm) resolve() {
	state, err := snapshot.ReadLog(context.Background(), s.store)
	if err != nil {
		s.Fatal(err)
	}
	if !state.Until.Before(s.unresolved) {
		s.unresolved = time.Time{}
	}
}

// resolveNow resolves what contradicts what was stored before, without a refresh, as an ingest does at its end.
func (s *storm) resolveNow(m *machine) {
	latest := s.unresolved
	s.machine("resolve", m, func(ctx context.Context) error {
		_, err := m.refresher.Resolve(ctx, time.Time{})
		return err
	}, func() {
		if s.unresolved.Equal(latest) && s.setBacks == 0 { // else rows may seem to be stored later than now
			s.unresolved = time.Time{}
		}
	})
}
