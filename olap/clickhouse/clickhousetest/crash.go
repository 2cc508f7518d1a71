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

// KillAtRename has the engine of a data directory killed when it is about to rename a file or a directory for the n-th
// time, from 1, until detach is called, which reports whether it was killed, once another one answers. Renames are how
// parts come into being; those of merges count, too. It returns when that is sure to happen. The test is skipped where
// there is no strace, or where this user may not trace the engine.
func KillAtRename(t testing.TB, dataDir string, n int) (detach func() (killed bool)) {
	t.Helper()
	pid := enginePID(t, dataDir)
	var mu sync.Mutex
	var traced *tracer
	detached := false
	// strace counts the renames of each thread for itself, and a refresh is the work of several. So the engine is
	// stopped after each rename, those are counted here, and the first one after n-1 of them, by whichever thread, is
	// deadly.
	const deadly = "error=EIO:signal=SIGKILL"
	mu.Lock()
	if n == 1 {
		traced = trace(t, pid, deadly, func() {})
	} else {
		left := n - 1
		traced = trace(t, pid, "signal=SIGSTOP", func() {
			if left--; left == 0 {
				go func() {
					mu.Lock()
					defer mu.Unlock()
					if !detached {
						traced.end()
						traced = trace(t, pid, deadly, func() {})
					}
					syscall.Kill(pid, syscall.SIGCONT)
				}()
			} else if left > 0 {
				syscall.Kill(pid, syscall.SIGCONT)
			}
		})
	}
	mu.Unlock()
	end := sync.OnceFunc(func() {
		mu.Lock()
		defer mu.Unlock()
		detached = true
		traced.end()
		syscall.Kill(pid, syscall.SIGCONT)
	})
	t.Cleanup(end)
	return func() bool {
		end()
		now, err := publishedPID(dataDir)
		return err != nil || now != pid
	}
}

// A tracer is a strace of a process.
type tracer struct {
	command *exec.Cmd
	read    chan struct{} // closed when all that it said was read
}

// trace has a process do something to itself (man strace, inject) at each rename, and calls stopped after each SIGSTOP
// that it got. It returns when the process is traced.
func trace(t testing.TB, pid int, inject string, stopped func()) *tracer {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("there is no strace to stop the engine at a chosen step")
	}
	const renames = "rename,renameat,renameat2"
	c := exec.Command(strace, "-f", "-p", fmt.Sprint(pid), "-e", "trace="+renames, "-e", "inject="+renames+":"+inject)
	said, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	s := &tracer{c, make(chan struct{})}
	attached := make(chan string, 1)
	go func() {
		defer close(s.read)
		defer close(attached)
		for lines := bufio.NewScanner(said); lines.Scan(); {
			switch line := lines.Text(); {
			case strings.Contains(line, "Operation not permitted"),
				strings.Contains(line, fmt.Sprintf("Process %d attached", pid)):
				select {
				case attached <- line:
				default:
				}
			case strings.Contains(line, "--- SIGSTOP {"):
				stopped()
			}
		}
	}()
	switch line, ok := <-attached; {
	case !ok:
		t.Error("strace ended")
	case strings.Contains(line, "not permitted"):
		t.Skip("this user may not trace the engine")
	}
	return s
}

// end lets go of the process.
func (s *tracer) end() {
	s.command.Process.Signal(syscall.SIGTERM)
	<-s.read
	s.command.Wait()
}

// enginePID is the process that answers now.
func enginePID(t testing.TB, dataDir string) int {
	t.Helper()
	pid, err := publishedPID(dataDir)
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func publishedPID(dataDir string) (int, error) {
	text, err := os.ReadFile(filepath.Join(dataDir, "engine", "address.json"))
	if err != nil {
		return 0, err
	}
	var published struct{ PID int }
	err = json.Unmarshal(text, &published)
	return published.PID, err
}
