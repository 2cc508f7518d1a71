package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/ingest/move"
	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/cells"
	"github.com/runlens/runlens/olap/clickhouse"
	"github.com/runlens/runlens/schema"
)

type cellsMoveCmd struct {
	storeFlags
	What string `arg:"" help:"The organization, or a slot with all of its organizations, such as slot:17."`
	To   string `required:"" placeholder:"CELL" help:"The cell that gets it."`
}

func (cellsMoveCmd) Help() string {
	return `Everything of the organizations is copied, compared, and then taken out of the old cell. They are answered
all the time. What is written waits for some seconds, between the last copy and the switch, and goes on in the new cell.
An organization that is moved by itself stays where it is when its slot is moved.
Every server, worker and command must know moves: replace those of older versions first.
A move that ended early, with Ctrl-C for instance, goes on when the same command is run again. Until then it may be
that writers of these organizations wait; cells list shows it.

Example:
  runlens cells move acme --to eu-2 --cells cells.yaml`
}

func (c cellsMoveCmd) Run(ctx context.Context, logger *slog.Logger, io streams) error {
	subject, err := cells.ParseSubject(c.What)
	if err != nil {
		return usageError{err}
	}
	return interruptible(ctx, 0, func(ctx context.Context) error {
		r, err := c.reach(ctx, logger)
		if err != nil {
			return err
		}
		defer r.Close()
		return r.move(ctx, subject, c.To, io)
	})
}

// A reached is the cells that could be opened.
type reached struct {
	*placed
	stores map[string]*clickhouse.Server
	conns  map[string]driver.Conn
	logger *slog.Logger
}

// reach opens all cells for moves, but for those that are away. Programs that don't know moves don't start from then
// on.
func (f storeFlags) reach(ctx context.Context, logger *slog.Logger) (*reached, error) {
	p, err := f.inCells(ctx, logger)
	if err != nil {
		return nil, err
	}
	r := &reached{placed: p, stores: map[string]*clickhouse.Server{}, conns: map[string]driver.Conn{}, logger: logger}
	var mu sync.Mutex
	var opening sync.WaitGroup
	for _, name := range p.names {
		opening.Go(func() {
			store, err := openForMoves(ctx, p.flags[name], logger)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				logger.Warn("the cell is away", "cell", name, "error", oneLine(err))
				return
			}
			r.stores[name], r.conns[name] = store, store.Conn()
		})
	}
	opening.Wait()
	for name, conn := range r.conns { // what one of them knows, all of this process do
		if _, err := p.directory.Told(ctx, name, conn, time.Now()); err != nil {
			r.Close()
			return nil, err
		}
	}
	return r, nil
}

func openForMoves(ctx context.Context, f storeFlags, logger *slog.Logger) (*clickhouse.Server, error) {
	store, err := openMigrated(ctx, f, logger)
	if err != nil {
		return nil, err
	}
	if err := require(ctx, store, schema.MigrationMoves); err != nil {
		store.Close()
		return nil, err
	}
	return store, nil
}

// require has binaries that don't know a migration refuse a store from now on.
func require(ctx context.Context, store *clickhouse.Server, migration int) error {
	db, err := store.DB()
	if err != nil {
		return err
	}
	defer db.Close()
	return schema.Require(ctx, db, migration)
}

// requireOfCopy has a store that was copied or restored refuse the binaries that a cell refuses, if it is a cell's.
// What the store of before required of binaries is not copied.
func requireOfCopy(ctx context.Context, store *clickhouse.Server) error {
	told, err := cells.Read(ctx, store.Conn())
	switch {
	case err != nil:
		return err
	case told.Version() > 0: // something was moved
		return require(ctx, store, schema.MigrationMoves)
	case told.Name() != "":
		return require(ctx, store, schema.MigrationPlacement)
	}
	return nil
}

// Close leaves the stores.
func (r *reached) Close() {
	for _, store := range r.stores {
		store.Close()
	}
	r.placed.Close()
}

// moveProgress is the pause between two lines about how much is copied.
const moveProgress = 5 * time.Second

// move moves a subject to a cell and says so.
func (r *reached) move(ctx context.Context, subject cells.Subject, to string, io streams) error {
	if _, known := r.flags[to]; !known {
		return usageError{fmt.Errorf("--to: the file of cells names no cell %q", to)}
	}
	from := r.directory.Placement().Place(subject).Cell
	began, said, copied := time.Now(), time.Now(), uint64(0)
	err := move.Run(ctx, move.Options{
		Cells: r.conns, Logger: r.logger, Secrets: olap.AcceptCursorSecrets,
		Progress: func(rows uint64) {
			if copied = rows; time.Since(said) >= moveProgress {
				said = time.Now()
				r.logger.Info("moving", "what", subject.String(), "copied_rows", rows)
			}
		},
		Reached: func(step move.Step) error {
			r.logger.Info("moving", "what", subject.String(), "from", from, "to", to, "step", string(step))
			return nil
		},
	}, subject, to)
	switch {
	case errors.Is(err, move.ErrThere):
		_, err = fmt.Fprintf(io.out, "%s is in %s\n", subject, to)
		return err
	case err != nil:
		return fmt.Errorf("%s: %w; the same command goes on with the move", subject, err)
	}
	_, err = fmt.Fprintf(io.out, "moved %s to %s: %d rows, %.1f s\n", subject, to, copied, time.Since(began).Seconds())
	return err
}
