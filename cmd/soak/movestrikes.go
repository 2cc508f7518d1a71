package main

import (
	"fmt"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/runlens/runlens/ingest/move"
)

// strikes are the kills during one run of the command that moves.
type strikes struct {
	*relocation
	move  *plannedMove
	mover *exec.Cmd
	gone  chan struct{} // closed when the command has ended
	all   sync.WaitGroup
	one   sync.Mutex // held while somebody is killed, or a choice is drawn
}

// at strikes at the points of a step, which the command has done. They are none of the move's any more.
func (s *strikes) at(step move.Step) {
	s.move.points = slices.DeleteFunc(s.move.points, func(p movePoint) bool {
		if p.after == step {
			s.all.Go(func() { s.tallies.add(p.victim, p.String(), s.strike(p)) })
		}
		return p.after == step
	})
}

// strike reports whether it killed the victim of a point.
func (s *strikes) strike(p movePoint) bool {
	if p.later {
		select {
		case <-s.gone:
			return false
		case <-time.After(s.draw()):
		}
	}
	s.one.Lock()
	defer s.one.Unlock()
	s.lock.Lock()
	s.killing = fmt.Sprintf("%s, %s, %s from %s to %s", p.victim, p, s.move.subject, s.move.from, s.move.to)
	s.lock.Unlock()
	return s.kill(p.victim)
}

func (s *strikes) draw() time.Duration {
	s.one.Lock()
	defer s.one.Unlock()
	return time.Duration(s.random.Int64N(int64(soonAfter)))
}

// kill kills a victim. It reports whether it was there.
func (s *strikes) kill(victim string) bool {
	var err error
	switch victim {
	case "mover":
		return s.mover.Process.Kill() == nil
	case "old cell":
		err = s.cells[s.move.from].product.KillEngine()
	case "new cell":
		err = s.cells[s.move.to].product.KillEngine()
	case "other cell":
		for name, cell := range s.cells {
			if name != s.move.from && name != s.move.to {
				err = cell.product.KillEngine()
			}
		}
	case "server":
		err = s.servers[s.random.IntN(len(s.servers))].kill()
	case "ingest":
		return s.writers[s.random.IntN(len(s.writers))].kill()
	case "worker":
		err = s.worker.kill()
	}
	if err != nil {
		s.say("%s: %v", victim, err)
	}
	return err == nil
}
