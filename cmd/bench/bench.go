package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/cmd/internal/harness"
	"github.com/runlens/runlens/cmd/internal/process"
	"github.com/runlens/runlens/olap/clickhouse"
	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
)

// A scenario is one group of measurements. Those without rows bring their own data.
type scenario struct {
	name    string
	rows    bool
	measure func(*bench, context.Context) error
}

// scenarios are in the order in which they run: what changes the data comes after what only reads it.
var scenarios = []scenario{
	{"others", true, (*bench).measureOthers}, // its first half is measured during the load
	{"query", true, (*bench).measureQueries},
	{"memory", true, (*bench).measureMemory},
	{"sizes", true, (*bench).measureSizes},
	{"threshold", true, (*bench).measureThreshold},
	{"options", true, (*bench).measureOptions},
	{"small", true, (*bench).measureSmall},
	{"clients", true, (*bench).measureClients},
	{"before", true, (*bench).measureBefore},
	{"cold", true, (*bench).measureCold},
	{"repeated", true, (*bench).measureRepeated},
	{"postgres", true, (*bench).measurePostgres},
	{"arrivals", true, (*bench).measureArrivals},
	{"growth", false, (*bench).measureGrowth},
	{"cells", false, (*bench).measureCells},
	{"ingest", false, (*bench).measureIngest},
}

// A bench is one run.
type bench struct {
	command
	log    io.Writer
	report *report

	folder harness.Folder // of this run alone, removed by close
	store  *clickhouse.Server
	world  world
	server *process.Server
	before *process.Server // of the other binary, while it is measured
	keys   map[schema.OrganizationID]string
	api    map[schema.OrganizationID]*apiClient // of server

	alone        []*stats // of the medium organization's questions, while no other had rows
	aloneAnswers []answer
}

func (b *bench) measure(ctx context.Context) error {
	if err := b.open(ctx); err != nil {
		return err
	}
	loaded := false
	for _, s := range scenarios {
		if !b.Only.Has(s.name) {
			continue
		}
		if s.rows && !loaded {
			began := time.Now()
			if err := b.prepare(ctx); err != nil {
				return err
			}
			b.report.took("load", began)
			loaded = true
		}
		b.say("measuring: %s", s.name)
		before, began := b.usage(), time.Now()
		if err := s.measure(b, ctx); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		b.report.took(s.name, began)
		// The engines that `runlens ingest` starts outlive it, so that nobody could distinguish them from others.
		if cores, known := b.usage().others(before); known && s.rows {
			b.report.OtherCores[s.name] = math.Round(100*cores) / 100
		}
	}
	return nil
}

// open starts the engine, in which the data lives, in a new directory.
func (b *bench) open(ctx context.Context) (err error) {
	if b.folder, err = harness.NewFolder(b.Dir); err != nil {
		return err
	}
	if b.store, err = b.openStore(ctx, b.storeDir()); err != nil {
		return err
	}
	b.report.Engine, err = b.store.Version(ctx)
	return err
}

// openStore starts an engine in a new directory, which the engine removes when it ends, also after a run that was
// killed.
func (b *bench) openStore(ctx context.Context, dir string) (*clickhouse.Server, error) {
	logger := slog.New(slog.NewTextHandler(b.log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	return clickhouse.Open(ctx, clickhouse.Config{DataDir: dir, EngineLib: b.EngineLib, Ephemeral: true, Logger: logger})
}

const stopPatience = 10 * time.Second

// closeStore ends an engine that has no other user, and waits until it and its directory are gone.
func closeStore(store *clickhouse.Server, dir string) {
	store.Close()
	harness.Poll(context.Background(), stopPatience, 20*time.Millisecond, func() bool {
		_, err := os.Stat(dir)
		return errors.Is(err, os.ErrNotExist)
	})
}

func (b *bench) storeDir() string { return filepath.Join(b.folder.Dir, "store") }

// loadShare is the share of maintenance during the load, which nobody should have to wait for.
const loadShare = 0.99

// prepare loads the rows, waits until the store is at rest, and starts the server that is measured.
func (b *bench) prepare(ctx context.Context) (err error) {
	share := loadShare
	if b.Share == 0 {
		share = 0
	}
	if b.server, err = b.startServer(ctx, b.folder.Dir, share); err != nil {
		return err
	}
	b.world = newWorld(b.Scale, b.Until)
	began := time.Now()
	if err := b.load(ctx); err != nil {
		return fmt.Errorf("load: %w", err)
	}
	b.say("loaded in %s", time.Since(began).Round(time.Second))
	if err := b.maintained(ctx, "the load"); err != nil {
		return err
	}
	if err := b.describeData(ctx); err != nil {
		return err
	}
	b.server.Stop()
	if b.server, err = b.startServer(ctx, b.folder.Dir, b.Share); err != nil {
		return err
	}
	return b.connect(ctx, b.world.sized()...)
}

// connect makes clients of the first organization of each class.
func (b *bench) connect(ctx context.Context, classes ...class) (err error) {
	b.api = map[schema.OrganizationID]*apiClient{}
	for _, c := range classes {
		if b.api[c.first()], err = b.client(ctx, b.server, c.first()); err != nil {
			return err
		}
	}
	return nil
}

// close ends all that the run started and removes its data.
func (b *bench) close() {
	if b.server != nil {
		b.server.Stop()
	}
	if b.store != nil {
		closeStore(b.store, b.storeDir())
	}
	b.folder.Remove()
}

func (b *bench) say(format string, args ...any) {
	harness.Say(b.log, format, args...)
}

const (
	// maintainPatience bounds the wait for what the server does by itself after a load.
	maintainPatience = 20 * time.Minute
	// maintainedFrom is the scale from which maintenance is worth the wait.
	maintainedFrom = 0.01
)

// maintained waits until the engine is at rest and the server has refreshed what was stored, and merges the product's
// partitions, which the server would do within minutes, and long before anybody queries a year. The naive tables are
// left to ClickHouse. The report calls what went before as after does.
func (b *bench) maintained(ctx context.Context, after string) error {
	b.rest(ctx)
	if b.Scale < maintainedFrom || b.Share == 0 {
		return nil
	}
	began := time.Now()
	loaded, err := snapshot.ReadLog(ctx, b.store.Conn())
	if err != nil {
		return err
	}
	for deadline := began.Add(maintainPatience); ; time.Sleep(time.Second) {
		state, err := snapshot.ReadLog(ctx, b.store.Conn())
		if err != nil {
			return err
		}
		refreshed := state.Until.After(loaded.Now)
		unmerged, err := unmerged(ctx, b.store.Conn())
		if err != nil {
			return err
		}
		if refreshed && len(unmerged) == 0 || time.Now().After(deadline) {
			b.report.Notes.Add("the store was maintained %s after %s; everything refreshed: %t, partitions in several parts: %d",
				time.Since(began).Round(time.Second), after, refreshed, len(unmerged))
			return nil
		}
		if !refreshed { // which may write to all of them
			continue
		}
		if err := merge(ctx, b.store.Conn(), unmerged); err != nil {
			return err
		}
	}
}

func merge(ctx context.Context, conn driver.Conn, partitions []string) error {
	for _, partition := range partitions {
		if err := conn.Exec(ctx, "OPTIMIZE TABLE "+partition+" FINAL"); err != nil {
			return err
		}
	}
	return nil
}

// unmerged are the product's partitions in several parts, or in one that was never merged, as OPTIMIZE names them.
func unmerged(ctx context.Context, conn driver.Conn) (partitions []string, err error) {
	err = conn.QueryRow(ctx, "SELECT groupArray(partition) FROM ("+
		"SELECT concat(table, ' PARTITION ID ''', partition_id, '''') AS partition FROM system.parts"+
		" WHERE database = currentDatabase() AND active"+
		" AND (table IN ('"+schema.TableRuns+"', '"+schema.TableAttributions+"') OR startsWith(table, 'rollup_'))"+
		" GROUP BY table, partition_id HAVING count() > 1 OR max(level) = 0)").Scan(&partitions)
	return partitions, err
}

// mergePatience bounds the wait for ClickHouse's own merges.
const mergePatience = 2 * time.Minute

// rest waits until the engine merges no more, so that merges do not disturb what is measured.
func (b *bench) rest(ctx context.Context) {
	quiet := 0
	rested := harness.Poll(ctx, mergePatience, 100*time.Millisecond, func() bool {
		var merges uint64
		if err := b.store.Conn().QueryRow(ctx, "SELECT count() FROM system.merges").Scan(&merges); err != nil {
			return true // whatever it is, the next query says it
		}
		if quiet++; merges > 0 {
			quiet = 0
		}
		return quiet == 3
	})
	if !rested {
		b.report.Notes.Add("merges were still running after %s", mergePatience)
	}
}
