package clickhousetest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// KillAtRename has the engine of a data directory killed when one of its threads is about to rename a file or a
// directory for the n-th time, from 1, until detach is called. Renames are how parts come into being. It returns when
// that is sure to happen. The test is skipped where there is no strace, or where this user may not trace the engine.
func KillAtRename(t testing.TB, dataDir string, n int) (detach func()) {
	t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("there is no strace to stop the engine at a chosen step")
	}
	pid := enginePID(t, dataDir)
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

// enginePID is the process that answers now.
func enginePID(t testing.TB, dataDir string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dataDir, "engine", "address.json"))
	if err != nil {
		t.Fatal(err)
	}
	var published struct{ PID int }
	if err := json.Unmarshal(text, &published); err != nil {
		t.Fatal(err)
	}
	return published.PID
}
