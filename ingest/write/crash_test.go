package write_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/runlens/runlens/ingest/write"
)

// The engine is killed at chosen renames, the steps by which parts come into being: the first falls between the entry
// in MergeTree's deduplication log and the part that it stands for. No acknowledged batch is lost, whatever the retry is told.
func TestCrashesOfTheEngineLoseNoAcknowledgedBatch(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("there is no strace to stop the engine at a chosen step")
	}
	engine, dir := ownEngine(t)
	const size, steps = 1000, 8
	retries := 0
	writer := write.NewWriter(engine.Conn(), write.Retry{Logger: quiet.Logger, Patience: time.Minute, Count: func() { retries++ }})
	for step := 1; step <= steps; step++ {
		detach := killAtRename(t, strace, enginePID(t, dir), step)
		if err := writer.Write(context.Background(), inOneMonth(size)); err != nil {
			t.Fatal(err)
		}
		detach()
		if n := records(t, engine.Conn()); n != uint64(step*size) {
			t.Errorf("killed at rename %d: %d of %d acknowledged records are there", step, n, step*size)
		}
	}
	if retries == 0 {
		t.Error("no kill hit an insert")
	}
}

// enginePID is the process that answers now.
func enginePID(t *testing.T, dir string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "engine", "address.json"))
	if err != nil {
		t.Fatal(err)
	}
	var published struct{ PID int }
	if err := json.Unmarshal(text, &published); err != nil {
		t.Fatal(err)
	}
	return published.PID
}

// killAtRename has a process killed when one of its threads is about to rename a file for the n-th time, until detach
// is called. It returns when that is sure to happen.
func killAtRename(t *testing.T, strace string, pid, n int) (detach func()) {
	t.Helper()
	inject := fmt.Sprintf("inject=rename,renameat,renameat2:error=EIO:signal=SIGKILL:when=%d", n)
	c := exec.Command(strace, "-f", "-p", fmt.Sprint(pid), "-e", "trace=rename,renameat,renameat2", "-e", inject)
	said, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	detach = sync.OnceFunc(func() {
		c.Process.Signal(syscall.SIGTERM)
		c.Wait()
	})
	t.Cleanup(detach)
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "Operation not permitted") {
			t.Skip("this user may not trace the engine")
		}
		if strings.Contains(lines.Text(), fmt.Sprintf("Process %d attached", pid)) {
			go func() {
				for lines.Scan() {
				}
			}()
			return detach
		}
	}
	t.Fatal("strace ended")
	return nil
}
