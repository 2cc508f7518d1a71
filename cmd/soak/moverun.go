package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
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
	// killsOfMove is how many kills are meant for one move. Those whose steps it doesn't come to are missed.
	killsOfMove = 6
	// runsOfMove is how often a move during which nobody is killed may fail.
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
	points   []movePoint // that it has not come to
}

// A deck gives out each point as often as the others, and points that were missed again.
type deck struct {
	points, missed []movePoint
	given          int
}

func newDeck(random *rand.Rand) *deck {
	d := &deck{}
	for _, later := range []bool{false, true} {
		for _, step := range moveSteps {
			for _, victim := range moveVictims {
				d.points = append(d.points, movePoint{victim, step, later})
			}
		}
	}
	random.Shuffle(len(d.points), func(i, j int) { d.points[i], d.points[j] = d.points[j], d.points[i] })
	return d
}

func (d *deck) next() (p movePoint) {
	if d.given++; len(d.missed) > 0 && d.given%2 == 0 {
		p, d.missed = d.missed[0], d.missed[1:]
		return p
	}
	d.points = append(d.points[1:], d.points[0])
	return d.points[len(d.points)-1]
}

// moveAll moves until the kills are done.
func (r *relocation) moveAll(ctx context.Context) error {
	d := newDeck(r.random)
	for r.tallies.kills() < r.MoveKills && d.given < (missesFor+1)*r.MoveKills {
		m := r.plan()
		for range min(killsOfMove, r.MoveKills-r.tallies.kills()) {
			m.points = append(m.points, d.next())
		}
		for failed := 0; ; {
			struck, err := r.moveOnce(ctx, &m)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err == nil {
				break
			}
			if !struck {
				failed++
			}
			if failed > runsOfMove {
				return fmt.Errorf("%s does not come from %s to %s: %w", m.subject, m.from, m.to, err)
			}
			harness.Pause(ctx, time.Second/5)
		}
		for _, p := range m.points {
			r.tallies.add(p.victim, p.String(), false)
		}
		d.missed = append(d.missed, m.points...)
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

// moveOnce runs the command and kills at the points of the move that it comes to. It reports whether anybody was to be
// killed; the error is how the command ended.
func (r *relocation) moveOnce(ctx context.Context, m *plannedMove) (struck bool, err error) {
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
	meant := len(m.points)
	s := strikes{relocation: r, move: m, mover: command, gone: make(chan struct{})}
	s.at(began)
	var last string
	lines := bufio.NewScanner(io.TeeReader(said, r.log))
	for lines.Scan() {
		last = lines.Text()
		for _, step := range moveSteps {
			if strings.Contains(last, `"`+string(step)+`"`) || strings.HasSuffix(last, "step="+string(step)) {
				s.at(step)
			}
		}
	}
	err = command.Wait()
	close(s.gone)
	s.all.Wait()
	struck = len(m.points) < meant
	if _, ok := errors.AsType[*exec.ExitError](err); ok {
		if !struck {
			r.say("the move of %s from %s to %s failed: %s", m.subject, m.from, m.to, last)
		}
		err = fmt.Errorf("%w: %s", err, last)
	}
	return struck, err
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
