package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/runlens/runlens/cmd/internal/harness"
	"github.com/runlens/runlens/cmd/internal/process"
	"github.com/runlens/runlens/cmd/internal/trap"
	"github.com/runlens/runlens/olap/clickhouse"
)

const (
	// mostDeaths is how many deaths of its engine a keeper sees: it starts the next one later each time.
	mostDeaths = 3
	// commandTries is how often a command is run until it succeeds.
	commandTries = 10
	enginePoll   = 20 * time.Millisecond
	// openPatience is how long an engine that was killed may take until it can be used again.
	openPatience = time.Minute
	openPoll     = time.Second / 10
)

// A killStore is a store whose engine is killed.
type killStore struct {
	soak    *soak
	life    context.Context // of the processes that run longer than one cycle
	dir     string
	product process.Product
	folders map[string]string // of the tables
	keeper  *process.Keeper
	deaths  int  // since the keeper was started
	keep    bool // the data, which shows what is wrong
	killed  int  // the process of the last engine that was killed

	conn *clickhouse.Server // to the engine of pid
	pid  int
}

// newKillStore is a store in a folder, which nothing uses yet. Processes that it starts live as long as ctx.
func newKillStore(ctx context.Context, s *soak, dir string) *killStore {
	k := &killStore{soak: s, life: ctx, dir: dir, folders: map[string]string{}}
	k.product = process.Product{Binary: s.Runlens, EngineLib: s.EngineLib, DataDir: filepath.Join(dir, "store")}
	return k
}

// openKillStore makes an empty store with an engine.
func openKillStore(ctx context.Context, s *soak, dir string) (*killStore, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	k := newKillStore(ctx, s, dir)
	var err error
	if k.keeper, err = k.product.Keep(ctx, dir); err != nil {
		return nil, err
	}
	if err = k.run(ctx, "migrate", "up"); err == nil {
		err = k.readFolders(ctx)
	}
	if err != nil {
		k.close()
		return nil, err
	}
	return k, nil
}

// readFolders learns in which folder each table has its parts.
func (k *killStore) readFolders(ctx context.Context) error {
	server, err := k.open(ctx)
	if err != nil {
		return err
	}
	rows, err := server.Conn().Query(ctx, "SELECT name, toString(uuid) FROM system.tables"+
		" WHERE database = currentDatabase() AND engine LIKE '%MergeTree'")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var table, folder string
		if err := rows.Scan(&table, &folder); err != nil {
			return err
		}
		if !folderExists(k.product.DataDir, folder) {
			return fmt.Errorf("the table %s has no folder %s", table, folder)
		}
		k.folders[table] = folder
	}
	return rows.Err()
}

// engine is the engine that runs now. It has a keeper that starts the next one at once.
func (k *killStore) engine(ctx context.Context) (process.Engine, error) {
	if k.deaths >= mostDeaths {
		k.keeper.Stop()
		var err error
		if k.keeper, err = k.product.Keep(k.life, k.dir); err != nil {
			return process.Engine{}, err
		}
		k.deaths = 0
	}
	return k.living(ctx)
}

// living is the engine that runs now, not the last one that was killed.
func (k *killStore) living(ctx context.Context) (process.Engine, error) {
	for {
		e, err := k.product.AwaitEngine(ctx)
		if err != nil || e.PID != k.killed || !harness.Pause(ctx, enginePoll) {
			return e, errors.Join(err, ctx.Err())
		}
	}
}

// release ends a trap. It reports whether the trap killed the engine at its point.
func (k *killStore) release(set *trap.Trap) (hit bool) {
	hit = set.Release()
	select {
	case <-set.Sprung():
		k.killed = set.PID()
		k.deaths++
		k.leave()
	default:
	}
	return hit
}

// open returns a connection to the engine that runs now. It does not keep it running.
func (k *killStore) open(ctx context.Context) (*clickhouse.Server, error) {
	var err error
	if harness.Poll(ctx, openPatience, openPoll, func() bool { err = k.connect(ctx); return err == nil }) {
		return k.conn, nil
	}
	return nil, errors.Join(err, ctx.Err())
}

// connect connects to the engine that runs now, unless it is connected. The engine may die meanwhile.
func (k *killStore) connect(ctx context.Context) error {
	e, err := k.living(ctx)
	if err != nil || k.conn != nil && k.pid == e.PID {
		return err
	}
	k.leave()
	password, err := os.ReadFile(filepath.Join(k.product.DataDir, "engine", "password"))
	if err != nil {
		return err
	}
	url := fmt.Sprintf("http://runlens:%s@%s/runlens", password, e.Addr)
	server, err := clickhouse.Open(ctx, clickhouse.Config{URL: url})
	if err != nil {
		return err
	}
	k.conn, k.pid = server, e.PID
	return nil
}

func (k *killStore) leave() {
	if k.conn != nil {
		k.conn.Close()
		k.conn = nil
	}
}

// patiently tries something until it succeeds: an engine that dies meanwhile is started again.
func (k *killStore) patiently(ctx context.Context, try func() error) error {
	for n := 1; ; n++ {
		err := try()
		if err == nil || n == commandTries || !harness.Pause(ctx, time.Second) {
			return err
		}
		k.leave()
	}
}

// run runs a command until it succeeds.
func (k *killStore) run(ctx context.Context, args ...string) error {
	var err error
	for range commandTries {
		command := k.product.Command(ctx, args...)
		var said bytes.Buffer
		command.Stderr = &said
		if err = command.Run(); err == nil {
			return nil
		}
		err = fmt.Errorf("runlens %s: %w: %s", args[0], err, lastOf(said.String()))
		var ended *exec.ExitError
		if ctx.Err() != nil || !errors.As(err, &ended) {
			break
		}
	}
	return err
}

// output runs a command once and returns its output, and how it ended.
func (k *killStore) output(ctx context.Context, args ...string) (out string, err error) {
	command := k.product.Command(ctx, args...)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err = command.Run(); err != nil {
		err = fmt.Errorf("runlens %s: %w: %s", args[0], err, lastOf(stderr.String()))
	}
	return stdout.String(), err
}

// lastOf returns the end of a text, 300 bytes at most.
func lastOf(text string) string {
	const most = 300
	return strings.TrimSpace(text[max(0, len(text)-most):])
}

// close ends the engine, and removes the data unless it is kept.
func (k *killStore) close() {
	k.leave()
	if k.keeper != nil {
		k.keeper.Stop()
	}
	k.product.AwaitEngineEnd()
	if !k.keep {
		os.RemoveAll(k.product.DataDir)
	}
}
