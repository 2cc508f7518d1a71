package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/runlens/runlens/cmd/internal/harness"
	"github.com/runlens/runlens/ingest/move"
	"github.com/runlens/runlens/olap/cells"
	"github.com/runlens/runlens/schema"
)

// began is the step before the first one that a mover reports.
const began move.Step = "begins"

// A movePoint is who is killed at which step of a move.
type movePoint struct {
	victim string
	after  move.Step
	later  bool // some time after the step, not at once
}

// moveSteps are those after which somebody is killed: until the next one the move does what comes then.
var moveSteps = []move.Step{began, move.Begun, move.Copied, move.Closed, move.Agreed, move.Damaged, move.Switched,
	move.Opened}

var moveVictims = []string{"mover", "old cell", "new cell", "other cell", "server", "ingest", "worker"}

func (p movePoint) String() string {
	step, _, _ := strings.Cut(string(p.after), ":")
	if p.later {
		return "soon after: " + step
	}
	return "at: " + step
}

const (
	// killsOfMove is how many runs of one move are disturbed before it is let alone.
	killsOfMove = 3
	// runsOfMove is how often a move that is let alone may fail.
	runsOfMove = 10
	// soonAfter is how long after a step somebody is killed at most.
	soonAfter = 1500 * time.Millisecond
	// movePatience is how long one run of the command may take.
	movePatience = 5 * time.Minute
)

// A plannedMove is one move.
type plannedMove struct {
	subject  string // as the command takes it
	from, to string
	of       []*movedOrganization
}

// moveAll moves until the kills are done.
func (r *relocation) moveAll(ctx context.Context) error {
	var points []movePoint
	for _, later := range []bool{false, true} {
		for _, step := range moveSteps {
			for _, victim := range moveVictims {
				points = append(points, movePoint{victim, step, later})
			}
		}
	}
	r.random.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
	tries, missed := 0, []movePoint(nil)
	next := func() (p *movePoint) {
		if r.tallies.kills() >= r.MoveKills || tries >= (missesFor+1)*r.MoveKills {
			return nil
		}
		if tries++; len(missed) > 0 && tries%2 == 0 {
			p, missed = &missed[0], missed[1:]
			return p
		}
		points = append(points[1:], points[0])
		return &points[len(points)-1]
	}
	for ctx.Err() == nil {
		m := r.plan()
		left, failed := killsOfMove, 0
		for ended := false; !ended; {
			var p *movePoint
			if left > 0 {
				left--
				if p = next(); p == nil && left == killsOfMove-1 {
					return nil
				}
			}
			hit, err := r.moveOnce(ctx, m, p)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if p != nil {
				if r.tallies.add(p.victim, p.String(), hit); !hit {
					missed = append(missed, *p)
				}
			} else if err != nil {
				failed++
			}
			if ended = err == nil; failed > runsOfMove {
				return fmt.Errorf("%s does not come from %s to %s: %w", m.subject, m.from, m.to, err)
			}
		}
		r.moves++
		for _, o := range m.of {
			o.cell = m.to
		}
	}
	return ctx.Err()
}

// plan draws a move: of an organization that is pinned by it, or of a slot with those that are not. Of each slot only
// the first organization is ever moved by itself.
func (r *relocation) plan() plannedMove {
	n := r.random.IntN(movedSlots)
	inSlot := r.organizations[n*organizationsOf : (n+1)*organizationsOf]
	m := plannedMove{}
	if r.random.IntN(2) == 0 {
		inSlot[0].pinned = true
		m.subject, m.of = inSlot[0].name, inSlot[:1]
	} else {
		m.subject = cells.SlotSubject(cells.SlotOf(schema.OrganizationID(inSlot[0].name))).String()
		for _, o := range inSlot {
			if !o.pinned {
				m.of = append(m.of, o)
			}
		}
	}
	m.from = m.of[0].cell
	others := slices.DeleteFunc(slices.Clone(movedCells), func(name string) bool { return name == m.from })
	m.to = others[r.random.IntN(len(others))]
	return m
}

// moveOnce runs the command and kills somebody at a point; nobody without one. The error is how the command ended.
func (r *relocation) moveOnce(ctx context.Context, m plannedMove, p *movePoint) (hit bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, movePatience)
	defer cancel()
	r.runs++
	command := r.product.Command(ctx, "cells", "move", m.subject, "--to", m.to)
	said, err := command.StderrPipe()
	if err != nil {
		return false, err
	}
	if err := command.Start(); err != nil {
		return false, err
	}
	killed := make(chan bool, 1)
	gone := make(chan struct{})
	strike := func() {
		if p.later {
			select {
			case <-gone:
				killed <- false
				return
			case <-time.After(time.Duration(r.random.Int64N(int64(soonAfter)))):
			}
		}
		killed <- r.kill(m, p, command)
	}
	reached := func(step move.Step) {
		if p != nil && p.after == step {
			r.lock.Lock()
			r.killing = fmt.Sprintf("%s, %s, %s from %s to %s", p.victim, p, m.subject, m.from, m.to)
			r.lock.Unlock()
			hit = true
			go strike()
		}
	}
	reached(began)
	var last string
	lines := bufio.NewScanner(io.TeeReader(said, r.log))
	for lines.Scan() {
		last = lines.Text()
		for _, step := range moveSteps {
			if strings.Contains(last, `"`+string(step)+`"`) || strings.HasSuffix(last, "step="+string(step)) {
				reached(step)
			}
		}
	}
	err = command.Wait()
	close(gone)
	if hit {
		hit = <-killed
	}
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		if !hit {
			r.say("the move of %s from %s to %s failed: %s", m.subject, m.from, m.to, last)
		}
		err = fmt.Errorf("%w: %s", err, last)
		harness.Pause(ctx, time.Second/5)
	}
	return hit, err
}

// kill kills the victim of a point. It reports whether it was there.
func (r *relocation) kill(m plannedMove, p *movePoint, mover *exec.Cmd) bool {
	var err error
	switch p.victim {
	case "mover":
		return mover.Process.Kill() == nil
	case "old cell":
		err = r.cells[m.from].product.KillEngine()
	case "new cell":
		err = r.cells[m.to].product.KillEngine()
	case "other cell":
		for name, cell := range r.cells {
			if name != m.from && name != m.to {
				err = cell.product.KillEngine()
			}
		}
	case "server":
		err = r.servers[r.random.IntN(len(r.servers))].kill()
	case "ingest":
		return r.writers[r.random.IntN(len(r.writers))].kill()
	case "worker":
		err = r.worker.kill()
	}
	if err != nil {
		r.say("%s: %v", p.victim, err)
	}
	return err == nil
}

// cellOf asks where an organization is.
func (r *relocation) cellOf(ctx context.Context, organization string) (string, error) {
	out, err := r.product.Command(ctx, "cells", "of", organization).Output()
	if err != nil {
		return "", fmt.Errorf("cells of: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// file is a file of the part.
func (r *relocation) file(name string) string { return filepath.Join(r.dir, name) }
