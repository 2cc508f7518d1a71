package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"

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

// drain moves everything out of a cell.
func (r *reached) drain(ctx context.Context, cell string, io streams) error {
	placement := r.directory.Placement()
	subjects := slices.Concat(placement.SlotsIn(cell), placement.PinnedIn(cell))
	load := map[string]int{} // how many slots each cell has, or is about to have
	for _, c := range r.list {
		load[c.Name] = placement.Count(c.Name)
	}
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(drainedAtOnce)
	for i, subject := range subjects {
		to := lightest(r.list, load, cell)
		load[to]++
		group.Go(func() error {
			r.logger.Info("draining", "cell", cell, "what", subject.String(), "to", to, "number", i+1, "of", len(subjects))
			var out bytes.Buffer
			err := r.move(ctx, subject, to, streams{in: io.in, out: &out, err: io.err})
			mu.Lock()
			defer mu.Unlock()
			io.out.Write(out.Bytes())
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(io.out, "the cell %s is empty\n", cell)
	return err
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
