package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/runlens/runlens/cmd/internal/harness"
	"github.com/runlens/runlens/olap/clickhouse"
	"github.com/runlens/runlens/olap/clickhouse/clickhousetest"
	"github.com/runlens/runlens/olap/clickhouse/clickhousetest/memory"
)

// A spare is an embedded engine in a folder of its own, which this process keeps running.
type spare struct {
	dir    string
	pid    int
	keeper *clickhouse.Server
}

// spares are engines that tests have given back, since to start one takes longer than to make its tables: as many as
// tests had at once.
var spares struct {
	sync.Mutex
	engines []*spare
}

// store are the flags of an embedded engine that the test has for itself, with an empty store, and which this process
// keeps running. A test before may have had it.
func store(t *testing.T) []string {
	t.Helper()
	return []string{"--data-dir", filled(t), "--engine-lib", clickhousetest.Library()}
}

// filled is the data directory of such an engine.
func filled(t *testing.T) (dir string) {
	t.Helper()
	spares.Lock()
	defer spares.Unlock()
	var e *spare
	if last := len(spares.engines) - 1; last >= 0 {
		e, spares.engines = spares.engines[last], spares.engines[:last]
	} else {
		dir, err := memory.NewDir("runlens-test-")
		must(t, err)
		e = &spare{dir: dir}
	}
	// The new keeper joins before the old one leaves.
	before := e.keeper
	keeper, err := openFilled(t, storeFlags{DataDir: e.dir, EngineLib: clickhousetest.Library()})
	if before != nil {
		before.Close()
	}
	if err != nil {
		os.RemoveAll(e.dir)
		t.Fatal(err)
	}
	e.keeper, e.pid = keeper, enginePID(e.dir)
	t.Cleanup(func() { e.giveBack(t) })
	return e.dir
}

// giveBack keeps an engine for the next test, without what this one left, unless it failed or ended the engine.
func (e *spare) giveBack(t *testing.T) {
	if t.Failed() || enginePID(e.dir) != e.pid || !e.emptied() {
		e.end()
		return
	}
	spares.Lock()
	defer spares.Unlock()
	spares.engines = append(spares.engines, e)
}

func (e *spare) emptied() bool {
	left, err := filepath.Glob(filepath.Join(e.dir, "*"))
	for _, path := range append(left, filepath.Join(e.dir, "engine", "backups")) {
		if filepath.Base(path) != "engine" {
			err = errors.Join(err, os.RemoveAll(path))
		}
	}
	drop := "DROP DATABASE `" + clickhouse.DefaultDatabase + "` SYNC"
	return errors.Join(err, e.keeper.Conn().Exec(context.Background(), drop)) == nil
}

// end ends an engine, which writes to its folder until a moment later.
func (e *spare) end() {
	e.keeper.Close()
	removed := func() bool { return os.RemoveAll(e.dir) == nil }
	harness.Poll(context.Background(), time.Minute, 10*time.Millisecond, removed)
}

func endSpares() {
	for _, e := range spares.engines {
		e.end()
	}
}

// An engine that a test gave back is the next one's, without a row or a file of the first one.
func TestSparesAreEmpty(t *testing.T) {
	var before []string
	t.Run("before", func(t *testing.T) {
		before = store(t)
		createKey(t, before)
		must(t, os.WriteFile(filepath.Join(before[1], adminTokenFile), []byte("x"), 0o600))
	})
	flags := store(t)
	keys := counted(t, joined(t, flags), "SELECT count() FROM api_keys")
	_, err := os.Stat(filepath.Join(flags[1], adminTokenFile))
	if flags[1] != before[1] || !os.IsNotExist(err) || keys > 0 {
		t.Errorf("%s after %s: %v, %d keys", flags[1], before[1], err, keys)
	}
}
