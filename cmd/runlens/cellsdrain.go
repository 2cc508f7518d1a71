package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/runlens/runlens/olap/cells"
)

// drainedAtOnce is how many moves of a drain are made at once: most of one is waiting.
const drainedAtOnce = 4

type cellsDrainCmd struct {
	storeFlags
	Cell string `arg:"" help:"The cell that is to be empty."`
}

func (cellsDrainCmd) Help() string {
	return `Moves all organizations of the cell to the others, by their weights. When it ends, the cell may be taken out
of the file of cells, once no server, worker or command uses the file with it. It may be stopped, and run again.

Example:
  runlens cells drain eu-1 --cells cells.yaml`
}

func (c cellsDrainCmd) Run(ctx context.Context, logger *slog.Logger, io streams) error {
	return interruptible(ctx, 0, func(ctx context.Context) error {
		r, err := c.reach(ctx, logger)
		if err != nil {
			return err
		}
		defer r.Close()
		if _, known := r.flags[c.Cell]; !known || len(r.list) < 2 {
			return usageError{fmt.Errorf("the file of cells has to name %q and another cell", c.Cell)}
		}
		return r.drain(ctx, c.Cell, io)
	})
}

// A departure is one move of a drain.
type departure struct {
	what cells.Subject
	to   string
}

// drain moves everything out of a cell: first the organizations whose moves ended early, since their slots are not
// moved before, then slots, then organizations that are pinned, which are not moved while their slots are.
func (r *reached) drain(ctx context.Context, cell string, io streams) error {
	begun, err := r.begun(ctx, cell)
	if err != nil {
		return err
	}
	placement := r.directory.Placement()
	load := map[string]int{} // how many slots each cell has, or is about to have
	for _, c := range r.list {
		load[c.Name] = placement.Count(c.Name)
	}
	var first, slots, pinned []departure
	for _, subject := range slices.Concat(placement.SlotsIn(cell), placement.PinnedIn(cell)) {
		if slices.ContainsFunc(begun, func(d departure) bool { return d.what == subject }) {
			continue
		}
		to := lightest(r.list, load, cell)
		load[to]++
		if subject.Organization() == "" {
			slots = append(slots, departure{subject, to})
		} else {
			pinned = append(pinned, departure{subject, to})
		}
	}
	for _, d := range begun {
		if d.what.Organization() == "" {
			slots = append(slots, d)
		} else {
			first = append(first, d)
		}
	}
	for _, moves := range [][]departure{first, slots, pinned} {
		if err := r.moveAll(ctx, cell, moves, io); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(io.out, "the cell %s is empty\n", cell)
	return err
}

// begun are the moves out of a cell that other commands began, and that have not ended. Some of them may be in their
// new cells already, while the old one is still to be purged.
func (r *reached) begun(ctx context.Context, cell string) (moves []departure, err error) {
	conn := r.conns[cell]
	if conn == nil {
		return nil, fmt.Errorf("the cell %s is away", cell)
	}
	told, err := r.directory.Told(ctx, cell, conn, time.Now())
	for _, subject := range told.UnderWay() {
		if to := told.Own(subject).To; to != cell {
			moves = append(moves, departure{subject, to})
		}
	}
	return moves, err
}

// moveAll makes moves out of a cell, some of them at once.
func (r *reached) moveAll(ctx context.Context, cell string, moves []departure, io streams) error {
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(drainedAtOnce)
	for i, d := range moves {
		group.Go(func() error {
			r.logger.Info("draining", "cell", cell, "what", d.what.String(), "to", d.to, "number", i+1, "of", len(moves))
			var out bytes.Buffer
			err := r.move(ctx, d.what, d.to, streams{in: io.in, out: &out, err: io.err})
			mu.Lock()
			defer mu.Unlock()
			io.out.Write(out.Bytes())
			return err
		})
	}
	return group.Wait()
}

// lightest is the cell, other than one, that has the fewest slots for its weight.
func lightest(list []cells.Cell, load map[string]int, but string) (name string) {
	var best cells.Cell
	for _, c := range list {
		if c.Name != but && (best.Name == "" || load[c.Name]*best.Weight < load[best.Name]*c.Weight) {
			best = c
		}
	}
	return best.Name
}
