package clickhouse_test

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/runlens/runlens/olap/clickhouse"
)

// Contract 2: "the first starts the embedded engine, the others join it, and the engine ends with the
// last of them".
func TestEngineEndsWithTheLastOfItsUsers(t *testing.T) {
	dir := dataDir(t)
	first := launch(t, dir)
	first.expect("ready")
	pid := enginePID(t, dir)

	second := launch(t, dir)
	second.expect("ready")
	if joined := enginePID(t, dir); joined != pid {
		t.Fatalf("the second process started engine %d while %d ran", joined, pid)
	}

	first.say("close")
	first.expect("closed <nil>")
	second.say("query")
	second.expect("answer 2")
	second.say("close")
	second.expect("closed <nil>")
	expectGone(t, pid)
}

func TestKilledOwnerLeavesTheEngineToTheOthers(t *testing.T) {
	dir := dataDir(t)
	owner := launch(t, dir)
	owner.expect("ready")
	pid := enginePID(t, dir)
	other := launch(t, dir)
	other.expect("ready")

	owner.kill()
	other.say("query")
	other.expect("answer 2")
	if now := enginePID(t, dir); now != pid {
		t.Errorf("engine %d was replaced by %d", pid, now)
	}
}

func TestKilledUsersLeaveNoOrphanAndNoStaleLock(t *testing.T) {
	dir := dataDir(t)
	a, b := launch(t, dir), launch(t, dir)
	a.expect("ready")
	b.expect("ready")
	pid := enginePID(t, dir)
	a.kill()
	b.kill()
	expectGone(t, pid)

	// The next one need not wait for that end: it joins the engine or starts another.
	c := launch(t, dir)
	c.expect("ready")
	c.kill()
	if s := open(t, config(dir)); !works(s) {
		t.Error("the engine does not answer after all its former users were killed")
	}
}

func TestAUserKilledWhileStartingLeavesNoOrphan(t *testing.T) {
	dir := dataDir(t)
	p := launch(t, dir)
	eventually(t, "the engine lock is taken", func() bool {
		_, err := os.Stat(filepath.Join(dir, "engine", "engine.lock"))
		return err == nil
	})
	p.kill()
	s := open(t, config(dir))
	if !works(s) {
		t.Error("the engine does not answer")
	}
}

func TestProcessesStartingAtOnceShareOneEngine(t *testing.T) {
	dir := dataDir(t)
	processes := []*process{launch(t, dir), launch(t, dir), launch(t, dir)}
	for _, p := range processes {
		p.expect("ready")
	}
	pid := enginePID(t, dir)
	for _, p := range processes {
		p.say("query")
		p.expect("answer 2")
	}
	if now := enginePID(t, dir); now != pid {
		t.Errorf("engine %d was replaced by %d", pid, now)
	}
}

// A process that comes while the last one leaves either keeps that engine or gets a new one.
func TestJoiningWhileTheLastOneLeaves(t *testing.T) {
	dir := dataDir(t)
	leaving := open(t, config(dir))
	for range 4 {
		left := make(chan error, 1)
		go func() { left <- leaving.Close() }()
		joining := open(t, config(dir))
		if !works(joining) {
			t.Fatal("the engine does not answer")
		}
		if err := <-left; err != nil {
			t.Fatal(err)
		}
		leaving = joining
	}
}

// A killed engine is started again under everyone who uses it; the pools stay, and so does the data.
func TestKilledEngineIsStartedAgain(t *testing.T) {
	ctx := context.Background()
	dir := dataDir(t)
	s := open(t, config(dir))
	other := launch(t, dir)
	other.expect("ready")
	for _, statement := range []string{"CREATE TABLE t (n UInt8) ENGINE = MergeTree ORDER BY n",
		"INSERT INTO t VALUES (7)"} {
		if err := s.Conn().Exec(ctx, statement); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		pid := enginePID(t, dir)
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		expectGone(t, pid)
		eventually(t, "the engine answers again", func() bool { return works(s) })
		if now := enginePID(t, dir); now == pid {
			t.Errorf("engine %d answers although it was killed", now)
		}
	}
	var n uint8
	if err := s.Conn().QueryRow(ctx, "SELECT n FROM t").Scan(&n); err != nil || n != 7 {
		t.Errorf("row after the restarts: %d, %v; want 7", n, err)
	}
	db, err := s.DB()
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRow("SELECT n FROM t").Scan(&n); err != nil || n != 7 {
		t.Errorf("row through database/sql: %d, %v; want 7", n, err)
	}
	other.say("query")
	other.expect("answer 2")
}

// Ctrl-C on the terminal, or a service manager that signals the whole group, must not take the engine
// from users that are still draining.
func TestEngineOutlivesSignalsMeantForItsUsers(t *testing.T) {
	dir := dataDir(t)
	s := open(t, config(dir))
	pid := enginePID(t, dir)
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if err := syscall.Kill(pid, signal); err != nil {
			t.Fatal(err)
		}
		if !works(s) {
			t.Fatalf("the engine does not answer after %v", signal)
		}
	}
	if now := enginePID(t, dir); now != pid {
		t.Errorf("engine %d was replaced by %d", pid, now)
	}
	if group, err := syscall.Getpgid(pid); err != nil || group != pid {
		t.Errorf("the engine is in process group %d (%v), want one of its own", group, err)
	}
}

func TestClosedServerLeavesItsDataToTheNext(t *testing.T) {
	ctx := context.Background()
	dir := dataDir(t)
	insert := func(s *clickhouse.Server) {
		t.Helper()
		if err := s.Conn().Exec(ctx, "CREATE TABLE IF NOT EXISTS t (n UInt8) ENGINE = MergeTree ORDER BY n"); err != nil {
			t.Fatal(err)
		}
		if err := s.Conn().Exec(ctx, "INSERT INTO t VALUES (1)"); err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, config(dir))
	if !s.Embedded() || s.Database() != clickhouse.DefaultDatabase {
		t.Errorf("embedded %v, database %q; want true, %q", s.Embedded(), s.Database(), clickhouse.DefaultDatabase)
	}
	insert(s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, config(dir))
	insert(s)
	var n uint64
	if err := s.Conn().QueryRow(ctx, "SELECT count() FROM t").Scan(&n); err != nil || n != 2 {
		t.Errorf("%d rows, %v; want 2", n, err)
	}
}
