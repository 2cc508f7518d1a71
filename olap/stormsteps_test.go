package olap_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/runlens/runlens/ingest/purge"
	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/rollup"
	"github.com/runlens/runlens/schema"
)

// The steps, each as often as it is drawn. While something is held, more changes.
const (
	stormSteps = `ask ask ask ask ask ask ask ask ask ask ask ask ask ask ask ask ask ask ask ask ask ask ask ask ask
		store store store store store store refresh refresh refresh refresh resolve resolve pass pass jump jump
		follow restart check merge fail purge rebuild`
	heldSteps = `ask ask ask ask ask ask ask store store store store refresh refresh refresh resolve jump fail rebuild
		purge`
)

// step does the next one.
func (s *storm) step() {
	steps := stormSteps
	if s.parked() {
		steps = heldSteps
	}
	switch s.weighted(steps) {
	case "ask":
		s.ask(s.servers[s.IntN(2)])
	case "store":
		s.storeNext()
	case "refresh":
		if m := s.idleMachine(); m != nil {
			if !s.oneIn(4) {
				s.pass(time.Duration(11+s.IntN(50)) * time.Second)
			}
			s.refresh(m)
		}
	case "resolve":
		if m := s.idleMachine(); m != nil && !s.unresolved.IsZero() {
			s.resolveNow(m)
		}
	case "pass":
		s.pass(time.Duration(1+s.IntN(20)) * time.Second)
	case "jump":
		s.jump()
	case "follow":
		server := s.servers[s.IntN(2)]
		s.in("follow", server.held, func() { server.engine.FollowOnce(context.Background()) }, func() {})
	case "restart":
		s.paths["restart"]++
		s.start(s.servers[s.IntN(2)])
	case "check":
		if m := s.idleMachine(); m != nil && !s.parked() {
			s.machine("check", m, func(ctx context.Context) error { return checkStep(ctx, m) }, func() {})
		}
	case "merge":
		s.paths["merge"]++
		merge(s, s.store)
	case "fail":
		s.failInsert()
	case "purge":
		s.purge()
	case "rebuild":
		if m := s.idleMachine(); m != nil && s.purging == 0 && s.oneIn(8) {
			s.purging++
			s.machine("rebuild", m, func(ctx context.Context) error {
				return rollup.Rebuild(ctx, m.held)
			}, func() { s.purging-- })
		}
	}
}

// ask asks a question, or for the next page of an answer.
func (s *storm) ask(server *stormServer) {
	if !s.oneIn(3) {
		s.last = s.IntN(len(s.questions))
	}
	a := *s.questions[s.last]
	if len(s.pages) > 0 && s.oneIn(2) {
		n := s.IntN(len(s.pages))
		page := s.pages[n]
		s.pages = slices.Delete(s.pages, n, n+1)
		a.organization, a.query, a.page = page.organization, page.query, page
		a.query.Cursor = *page.Cursor
	}
	s.pose(server, server.engine, &a)
}

func (s *storm) pose(server *stormServer, engine *olap.Engine, a *asked) {
	a.server, a.begin = slices.Index(s.servers, server), s.truth.States()
	a.excused = s.between(a.organization)
	s.in("ask", server.held, func() { a.run(engine) }, func() { s.answered(a) })
}

// between reports whether an organization is between states: a purge takes out row by row, and records that contradict
// each other count once from the next refresh on (contract 4.20).
func (s *storm) between(organization string) bool {
	return s.purgingOf == organization || !s.unresolved.IsZero()
}

func (s *storm) answered(a *asked) {
	s.answers++
	a.end, a.setBack = s.truth.States(), s.setBacks > 0
	s.say("answer of %d, changes %d to %d: %v, asOf %s, %+v", a.server, a.begin, a.end, a.Rows, a.AsOf, a.strategy)
	if a.err != nil {
		s.Errorf("history %d: %v", s.seed, a.err)
		return
	}
	for _, path := range a.paths() {
		s.paths[path]++
	}
	if a.excused || s.between(a.organization) || a.page != nil && a.page.within == nil {
		return
	}
	if wrong := a.judge(s.truth); wrong != "" {
		s.Errorf("history %d, step %d, %s", s.seed, s.now, a.tell(s.truth, wrong))
		return
	}
	s.judged++
	if a.Cursor != nil {
		s.pages = append(s.pages, a)
	}
}

// idleMachine is one that does nothing; nil for none.
func (s *storm) idleMachine() *machine {
	for _, n := range s.Perm(len(s.machines)) {
		if !s.machines[n].busy {
			return s.machines[n]
		}
	}
	return nil
}

// checkStep does a step of a check. Where a rebuild drops the last part of a table meanwhile, ClickHouse misses a
// virtual column of its projections, and the step is to be made again.
func checkStep(ctx context.Context, m *machine) error {
	_, err := m.checker.Step(ctx)
	if err != nil && strings.Contains(err.Error(), "Not found column __table") &&
		strings.Contains(err.Error(), "._partition_id") {
		_, err = m.checker.Step(ctx)
	}
	return err
}

// machine has a machine do something, again where another one took it over.
func (s *storm) machine(name string, m *machine, do func(context.Context) error, ended func()) {
	m.busy = true
	var err error
	s.in(name, m.held, func() {
		for tries := 0; tries == 0 || errors.Is(err, rollup.ErrLost) && tries < 10; tries++ {
			err = do(context.Background())
		}
	}, func() {
		m.busy = false
		if err != nil {
			s.Errorf("history %d, %s: %v", s.seed, name, err)
		}
		ended()
	})
}

// purge takes a person out.
func (s *storm) purge() {
	m := s.idleMachine()
	if m == nil || s.purging > 0 || s.inserting || !s.oneIn(8) {
		return
	}
	organization := []string{"acme", "umbra"}[s.IntN(2)]
	person := []string{"ada@example.com", "bob@example.org", "+15550100"}[s.IntN(3)]
	s.purging++
	s.purgingOf = organization
	s.purged[organization+" "+person] = true
	s.machine("purge", m, func(ctx context.Context) error {
		return purge.Person(schema.OrganizationID(organization), person).Run(ctx, m.held, func(purge.Step) {})
	}, func() {
		s.purging--
		s.purgingOf = ""
		s.truth.Purge(organization, person)
	})
}

// pass lets time pass.
func (s *storm) pass(d time.Duration) {
	if s.inserting || s.unread && !s.readClock() {
		return
	}
	s.paths["time passes"]++
	s.setClock(s.shift + d)
	s.say("%v pass", d)
}

// jump moves the store's clock, by a second to an hour.
func (s *storm) jump() {
	by := time.Duration(math.Exp(s.Float64()*math.Log(3600))*1000) * time.Millisecond
	if s.inserting || !s.readClock() {
		return
	}
	if s.oneIn(2) {
		s.paths["the clock is set forward"]++
	} else {
		by = -by
		s.paths["the clock is set back"]++
		s.setBacks++
		s.unread = true
	}
	s.setClock(s.shift + by)
	s.say("the clock jumps by %v", by)
}

// readClock has a refresher read the clock, as one does every second. So its jumps are seen, but for one that is undone
// at once (schema/decisions/as-of.md). It reports false where a change keeps refreshers away.
func (s *storm) readClock() bool {
	if s.purging > 0 {
		return false
	}
	m := s.machines[0]
	for _, one := range slices.Clone(s.tasks) {
		if one.held == m.held {
			s.free(one)
			if m.busy {
				return false
			}
		}
	}
	m.held.Restart()
	if err := steps(context.Background(), m.refresher); err != nil {
		s.Errorf("history %d: %v", s.seed, err)
	}
	s.unread = false
	s.resolve()
	return true
}

// end asks every question once more of both servers and of one that starts now, and compares the rollup.
func (s *storm) end() {
	for s.unread && !s.readClock() {
		s.Fatal("the clock can't be read")
	}
	s.pass(s.farthest - s.shift + 2*time.Minute)
	compare := s.oneIn(12)
	if compare || !s.unresolved.IsZero() {
		s.readClock()
	}
	if s.purging > 0 || !s.unresolved.IsZero() {
		s.Errorf("history %d: the store is between states for good", s.seed)
	}
	late := &stormServer{held: s.servers[0].held, as: 10_000_000}
	s.start(late)
	for n, q := range s.questions {
		for _, engine := range []*olap.Engine{s.servers[n%2].engine, late.engine} {
			a := *q
			s.pose(s.servers[n%2], engine, &a)
			s.freeAll()
		}
	}
	if !compare {
		return
	}
	s.repair()
	differences, err := rollup.Check(context.Background(), s.machines[0].held)
	if err != nil && !errors.Is(err, rollup.ErrNothingToCheck) || len(differences) > 0 {
		s.Errorf("history %d: the rollup differs: %+v, %v", s.seed, differences, err)
	}
}
