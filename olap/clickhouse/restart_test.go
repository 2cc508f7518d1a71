package clickhouse_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/runlens/runlens/olap/clickhouse"
	"github.com/runlens/runlens/olap/cost"
	"github.com/runlens/runlens/olap/olaptest/logtest"
)

// slowStart is a start of the engine that may take longer than reads wait, with the time until it is begun.
const slowStart = 2 * time.Second

// logging returns a configuration for dir, and its log.
func logging(dir string) (clickhouse.Config, *logtest.Buffer) {
	var log logtest.Buffer
	c := config(dir)
	c.Logger = slog.New(slog.NewTextHandler(&log, nil))
	return c, &log
}

// failedUnlessSlow fails the test, or skips the rest of it where a start took so long that reads could not wait for it.
func failedUnlessSlow(t *testing.T, s *clickhouse.Server, log *logtest.Buffer, format string, args ...any) {
	t.Helper()
	eventually(t, "the engine answers again", func() bool { return works(s) })
	for _, line := range strings.Split(log.String(), " took=")[1:] {
		if took, err := time.ParseDuration(strings.TrimSpace(strings.SplitN(line, "\n", 2)[0])); err != nil {
			t.Error(err)
		} else if took > slowStart {
			t.Skipf("a start took %v: this machine is too busy", took)
		}
	}
	t.Fatalf(format, args...)
}

func killEngine(t *testing.T, dir string) {
	t.Helper()
	if err := syscall.Kill(enginePID(t, dir), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// Contract 25: "costs time and not errors". However often the engine dies, the next start is not put off: it is not the
// starts that fail.
func TestReadsWaitForTheRestart(t *testing.T) {
	dir := dataDir(t)
	c, log := logging(dir)
	s := open(t, c)
	for range 7 {
		killEngine(t, dir)
		began := time.Now()
		if version, err := s.Version(context.Background()); err != nil {
			failedUnlessSlow(t, s, log, "after %v: %q, %v", time.Since(began), version, err)
		}
	}
}

// awaitStatement waits until a statement with the mark has read so many rows.
func awaitStatement(t *testing.T, s *clickhouse.Server, mark string, rows int) {
	t.Helper()
	eventually(t, "the statement runs", func() bool {
		var n uint64
		err := s.Conn().QueryRow(context.Background(), fmt.Sprintf("SELECT count() FROM system.processes WHERE "+
			"query LIKE '%%%s%%' AND query NOT LIKE '%%system.processes%%' AND read_rows >= %d", mark, rows)).Scan(&n)
		return err == nil && n > 0
	})
}

// What only reads runs again when the engine dies while it runs, also when a part of its answer has come.
func TestReadsRunAgain(t *testing.T) {
	dir := dataDir(t)
	c, log := logging(dir)
	s := open(t, c)
	for name, test := range map[string]struct {
		statement string
		rows      int // that it has read when the engine dies
	}{
		"no answer yet": {"SELECT 'x' FROM numbers(1000) WHERE sleepEachRow(0.0025) = 0 SETTINGS max_block_size = 1000", 0},
		"part of the answer": {"SELECT repeat('x', 10000) FROM numbers(1000) WHERE sleepEachRow(0.0025) = 0 " +
			"SETTINGS max_block_size = 100", 300}, // ClickHouse sends what exceeds a MiB
	} {
		t.Run(name, func(t *testing.T) {
			type answer struct {
				rows int
				err  error
			}
			answered := make(chan answer, 1)
			go func() {
				rows, err := s.Conn().Query(context.Background(), test.statement)
				if err != nil {
					answered <- answer{0, err}
					return
				}
				defer rows.Close()
				n := 0
				for rows.Next() {
					n++
				}
				answered <- answer{n, rows.Err()}
			}()
			awaitStatement(t, s, "sleepEachRow(0.0025)", test.rows)
			killEngine(t, dir)
			if a := <-answered; a.err != nil || a.rows != 1000 {
				failedUnlessSlow(t, s, log, "%d rows, %v; want 1000", a.rows, a.err)
			}
		})
	}
}

// A statement that fails amid its answer does not run again, and its exception arrives.
func TestExceptionAmidAnAnswer(t *testing.T) {
	s := open(t, config(dataDir(t)))
	ctx, meter := cost.Measure(context.Background())
	rows, err := s.Conn().Query(ctx,
		"SELECT throwIf(number = 900, 'amid'), repeat('x', 10000) FROM numbers(1000) SETTINGS max_block_size = 100")
	if err == nil {
		for rows.Next() {
		}
		err = rows.Err()
		rows.Close()
	}
	var exception *driver.Exception
	if !errors.As(err, &exception) || exception.Code != 395 {
		t.Errorf("%v, want exception 395", err)
	}
	if n := meter.Cost().Statements; n != 1 {
		t.Errorf("it ran %d times", n)
	}
}

// What may have had its effect does not run again.
func TestWritesDoNotRunAgain(t *testing.T) {
	ctx := context.Background()
	dir := dataDir(t)
	s := open(t, config(dir))
	if err := s.Conn().Exec(ctx, "CREATE TABLE t (n UInt64) ENGINE = MergeTree ORDER BY n"); err != nil {
		t.Fatal(err)
	}
	wrote := make(chan error, 1)
	go func() {
		wrote <- s.Conn().Exec(ctx, "INSERT INTO t SELECT number FROM numbers(1000) WHERE sleepEachRow(0.0025) = 0 "+
			"SETTINGS max_block_size = 1000")
	}()
	awaitStatement(t, s, "INSERT INTO t", 0)
	killEngine(t, dir)
	if err := <-wrote; err == nil {
		t.Error("the insert is acknowledged")
	}
	eventually(t, "the engine answers again", func() bool { return works(s) })
	var n uint64
	if err := s.Conn().QueryRow(ctx, "SELECT count() FROM t").Scan(&n); err != nil || n != 0 {
		t.Errorf("%d rows (%v), want none", n, err)
	}
}

// Whoever starts the next engine, the process that started the dead one logs how it ended, and says so once.
func TestDeathIsLoggedWithItsStatus(t *testing.T) {
	dir := dataDir(t)
	c, log := logging(dir)
	s := open(t, c)
	c, other := logging(dir)
	joined := open(t, c)
	pids := map[int]bool{}
	for range 6 {
		pids[enginePID(t, dir)] = true
		killEngine(t, dir)
		eventually(t, "the engine answers again", func() bool { return works(s) && works(joined) })
	}
	for pid := range pids {
		died := fmt.Sprintf("msg=\"embedded engine died\" pid=%d status=\"signal: killed\"", pid)
		eventually(t, died, func() bool { return strings.Contains(log.String()+other.String(), died) })
		if n := strings.Count(log.String()+other.String(), died); n != 1 {
			t.Errorf("%d times: %s", n, died)
		}
	}
}

// A folder that has come into another user's hands gets no engine.
func TestRestartRefusesAFolderOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a folder away")
	}
	c, log := logging(dataDir(t))
	s := open(t, c)
	folder := filepath.Join(c.DataDir, "engine")
	pid := enginePID(t, c.DataDir)
	if err := os.Chown(folder, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	killEngine(t, c.DataDir)
	refused := fmt.Sprintf("%s belongs to user %d", folder, nobody)
	eventually(t, refused, func() bool { return strings.Contains(log.String(), refused) })
	if now := enginePID(t, c.DataDir); now != pid {
		t.Errorf("engine %d was started all the same", now)
	}
	if err := os.Chown(folder, 0, 0); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the engine answers again", func() bool { return works(s) })
}
