package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/runlens/runlens/ingest/transfer"
	"github.com/runlens/runlens/olap/cells"
	"github.com/runlens/runlens/olap/clickhouse"
	"github.com/runlens/runlens/schema"
)

// oneCell is the name of the cell of a deployment that has no cells: everything is in it.
const oneCell = ""

// A placed is the cells of a deployment and where organizations are in them. A deployment without a file of cells has
// one cell without a name, and nothing is read for it.
type placed struct {
	list      []cells.Cell // those of the file; nil for one without a name
	names     []string     // of them
	flags     map[string]storeFlags
	directory *cells.Directory // nil for one cell without a name
	held      []*clickhouse.Server
}

// named reads what cells there are. Nobody knows then where organizations are.
func (f storeFlags) named() (*placed, error) {
	if f.Cells == "" {
		return &placed{names: []string{oneCell}, flags: map[string]storeFlags{oneCell: f}}, nil
	}
	if f.ClickhouseURL != "" {
		return nil, usageError{errors.New(
			"--cells and --clickhouse-url exclude each other: the file names the servers")}
	}
	list, err := cells.ReadFile(f.Cells)
	if err != nil {
		return nil, usageError{fmt.Errorf("--cells: %w", err)}
	}
	p := &placed{list: list, flags: map[string]storeFlags{}}
	for _, c := range list {
		of := f
		of.cell, of.ClickhouseURL, of.ClickhousePasswordFile, of.DataDir = c.Name, c.URL, c.PasswordFile, c.DataDir
		p.names, p.flags[c.Name] = append(p.names, c.Name), of
	}
	return p, nil
}

// place finds out where organizations are. The caller closes what it returns.
func (f storeFlags) place(ctx context.Context, logger *slog.Logger) (*placed, error) {
	p, err := f.named()
	if err != nil || p.list == nil {
		return p, err
	}
	placement, err := p.find(ctx, logger)
	if err != nil {
		p.Close()
		return nil, err
	}
	p.know(placement)
	return p, nil
}

// know has everything that uses a cell begin with a placement.
func (p *placed) know(placement *cells.Placement) {
	p.directory = cells.NewDirectory(placement)
	for name, of := range p.flags {
		of.directory, of.placement = p.directory, placement
		p.flags[name] = of
	}
}

// find asks all cells at once where organizations are. The first that knows is enough, so that one that is away costs
// no time; only the first start needs all.
func (p *placed) find(ctx context.Context, logger *slog.Logger) (*cells.Placement, error) {
	type opened struct {
		name  string
		store *clickhouse.Server
		err   error
	}
	results := make(chan opened, len(p.list))
	opening, cancel := context.WithCancel(ctx)
	for _, name := range p.names {
		go func() {
			store, err := openUnplaced(opening, p.flags[name], logger)
			results <- opened{name, store, err}
		}()
	}
	reached := map[string]driver.Conn{}
	var failures []error
	for n := range p.list {
		next := <-results
		if next.err != nil {
			failures = append(failures, ofCell(next.name, next.err))
			continue
		}
		p.held = append(p.held, next.store)
		reached[next.name] = next.store.Conn()
		placement, err := cells.Find(ctx, p.list, reached)
		if errors.Is(err, cells.ErrUnplaced) {
			continue
		}
		cancel()
		go func() {
			for range len(p.list) - n - 1 {
				if late := <-results; late.store != nil {
					late.store.Close()
				}
			}
		}()
		return placement, err
	}
	cancel()
	if len(reached) > 0 {
		failures = append([]error{cells.ErrUnplaced}, failures...)
	}
	return nil, errors.Join(failures...)
}

// Close leaves the stores that were asked.
func (p *placed) Close() {
	for _, store := range p.held {
		store.Close()
	}
	p.held = nil
}

// nameOf is the name of the cell of an organization.
func (p *placed) nameOf(organization schema.OrganizationID) string {
	if p.directory == nil {
		return oneCell
	}
	return p.directory.Placement().Of(organization)
}

// index is the position in names of the cell of an organization, as far as it is known by then; -1 where the file does
// not name it.
func (p *placed) index() func(schema.OrganizationID) int {
	positions := map[string]int{}
	for i, name := range p.names {
		positions[name] = i
	}
	return func(organization schema.OrganizationID) int {
		if i, known := positions[p.nameOf(organization)]; known {
			return i
		}
		return -1
	}
}

// admit makes sure that a store that was opened is the one that the flags mean, and whole.
func (f storeFlags) admit(ctx context.Context, store *clickhouse.Server) error {
	if err := transfer.Whole(ctx, store.Conn()); err != nil {
		return err
	}
	switch {
	case f.directory != nil:
		if err := f.directory.Placement().Admit(ctx, f.cell, store.Conn()); err != nil {
			return err
		}
		// Who opens all cells knows what the newest of them says, whichever was the first that was asked.
		if _, err := f.directory.Told(ctx, f.cell, store.Conn(), time.Now()); err != nil {
			return err
		}
		return require(ctx, store, schema.MigrationPlacement)
	case f.Cells != "":
		return usageError{errors.New("with --cells, this command needs to know the cell")}
	default:
		return cells.Alone(ctx, store.Conn())
	}
}

// owns reports of an organization whether it is in a cell, as was known at the beginning: so who goes through all cells
// has each organization in one of them, although some are moved meanwhile.
func (f storeFlags) owns() func(schema.OrganizationID) bool {
	if f.directory == nil {
		return nil
	}
	placement := f.placement
	return func(organization schema.OrganizationID) bool { return placement.Of(organization) == f.cell }
}

// gate is that of the cell whose store was opened; nil where there are no cells.
func (f storeFlags) gate(conn driver.Conn) *cells.Gate { return f.directory.NewGate(f.cell, conn) }

// eachStore does something with the store of every cell, as placed.each does.
func (f storeFlags) eachStore(
	ctx context.Context, logger *slog.Logger, io streams, do func(storeFlags, *clickhouse.Server) error,
) error {
	p, err := f.place(ctx, logger)
	if err != nil {
		return err
	}
	defer p.Close()
	return p.eachStore(ctx, logger, io, do)
}

func (p *placed) eachStore(
	ctx context.Context, logger *slog.Logger, io streams, do func(storeFlags, *clickhouse.Server) error,
) error {
	return p.each(io, func(f storeFlags) error {
		return f.withStore(ctx, logger, func(store *clickhouse.Server) error { return do(f, store) })
	})
}

// each does something with every cell, one after the other, and goes on where one fails. It says of several which one
// comes.
func (p *placed) each(io streams, do func(storeFlags) error) error {
	var failures []error
	for _, name := range p.names {
		if name != oneCell {
			say(io.err, "cell %s:", name)
		}
		failures = append(failures, ofCell(name, do(p.flags[name])))
	}
	return errors.Join(failures...)
}

// openAll opens the stores of all cells at once, in their order. An engine that this starts is joined by what opens
// them again, until they are left.
func (f storeFlags) openAll(
	ctx context.Context, logger *slog.Logger, open opener,
) (p *placed, stores []*clickhouse.Server, leave func(), err error) {
	if p, err = f.place(ctx, logger); err != nil {
		return nil, nil, nil, err
	}
	defer p.Close()
	if stores, err = p.open(ctx, logger, open); err != nil {
		return nil, nil, nil, err
	}
	return p, stores, func() { closeAll(stores) }, nil
}

// An opener opens a store, as openMigrated does.
type opener func(context.Context, storeFlags, *slog.Logger) (*clickhouse.Server, error)

func (p *placed) open(ctx context.Context, logger *slog.Logger, one opener) ([]*clickhouse.Server, error) {
	stores, failures := make([]*clickhouse.Server, len(p.names)), make([]error, len(p.names))
	var opening sync.WaitGroup
	for i, name := range p.names {
		opening.Go(func() {
			stores[i], failures[i] = one(ctx, p.flags[name], logger)
			failures[i] = ofCell(name, failures[i])
		})
	}
	opening.Wait()
	if err := errors.Join(failures...); err != nil {
		closeAll(stores)
		return nil, err
	}
	return stores, nil
}

// ofCell says of an error in which cell it is, if there are several; of joined errors, of each.
func ofCell(name string, err error) error {
	if name == oneCell {
		return err
	}
	var all []error
	for _, one := range joinedErrors(err) {
		all = append(all, fmt.Errorf("cell %s: %w", name, one))
	}
	return errors.Join(all...)
}

// loggerOf says of each line in which cell it is, if there are several.
func loggerOf(name string, logger *slog.Logger) *slog.Logger {
	if name == oneCell {
		return logger
	}
	return logger.With("cell", name)
}

// metricsOf says of each metric in which cell it is, if there are several.
func metricsOf(name string, c prometheus.Collector) prometheus.Collector {
	if name == oneCell {
		return c
	}
	return prometheus.WrapCollectorWith(prometheus.Labels{"cell": name}, c)
}

func closeAll(stores []*clickhouse.Server) {
	for _, store := range stores {
		if store != nil {
			store.Close()
		}
	}
}
