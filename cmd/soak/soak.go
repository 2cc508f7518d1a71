package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/runlens/runlens/cmd/internal/harness"
)

// A part is one proof. Each has a server and a data directory of its own.
type part struct {
	name string
	run  func(*soak, context.Context) error
}

var parts = []part{
	{"tests", (*soak).proveTests},
	{"ranges", (*soak).proveRanges},
	{"bodies", (*soak).proveBodies},
	{"mixed", (*soak).proveMixed},
	{"smuggling", (*soak).proveSmuggling},
	{"kills", (*soak).proveKills},
	{"push", (*soak).provePush},
	{"oracle", (*soak).proveOracle},
	{"storm", (*soak).proveStorm},
	{"sources", (*soak).proveSources},
	{"siege", (*soak).proveSiege},
	{"upgrade", (*soak).proveUpgrade},
	{"narrowed", (*soak).proveNarrowed},
	{"moves", (*soak).proveMoves},
}

// A soak is one run.
type soak struct {
	command
	log    io.Writer
	report *report
	folder harness.Folder // of this run alone
	part   string         // the running one
}

func (s *soak) prove(ctx context.Context) (err error) {
	if s.folder, err = harness.NewFolder(s.Dir); err != nil {
		return err
	}
	s.say("seed %d", s.Seed)
	for _, p := range parts {
		if !s.Only.Has(p.name) {
			continue
		}
		s.part = p.name
		began := time.Now()
		s.say("begins")
		err := p.run(s, ctx)
		if ctx.Err() != nil {
			return errors.Join(errors.New("interrupted"), err)
		}
		if err != nil {
			s.miss("runs to its end", err.Error())
		}
		s.say("took %s", time.Since(began).Round(time.Second))
	}
	return nil
}

// clean removes what the run left. The servers' logs, and the stores of moves, stay where they are needed to explain a
// miss.
func (s *soak) clean(all bool) {
	if s.folder.Dir != "" && !all {
		s.say("the servers' logs, and stores that are not right after moves, are in %s", s.folder.Dir)
		return
	}
	s.folder.Remove()
}

// say reports progress.
func (s *soak) say(format string, args ...any) {
	harness.Say(s.log, "%-9s %s", s.part, fmt.Sprintf(format, args...))
}

// see adds a figure that has no bound.
func (s *soak) see(what, format string, args ...any) {
	s.report.add(figure{part: s.part, what: what, seen: fmt.Sprintf(format, args...)})
}

// hold adds a figure and whether it kept its bound.
func (s *soak) hold(what, seen, bound string, met bool) {
	s.report.add(figure{part: s.part, what: what, seen: seen, bound: bound, met: met})
}

func (s *soak) miss(what, seen string) { s.hold(what, seen, "yes", false) }

// none adds a number that must be 0, and the first examples of what it counts.
func (s *soak) none(what string, seen *examples) {
	s.hold(what, fmt.Sprint(seen.count()), "0", seen.count() == 0)
	for _, example := range seen.first() {
		s.report.notes.Add("%s, %s: %s", s.part, what, example)
	}
}
