package clickhousetest

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// KillAtRename has the engine of a data directory killed when it is about to rename a file or a directory for the n-th
// time, from 1, until detach is called, which reports whether it was killed, once another one answers. Renames are how
// parts come into being; those of merges count, too. It returns when that is sure to happen. The test is skipped where
// there is no strace, or where this user may not trace the engine.
func KillAtRename(t testing.TB, dataDir string, n int) (detach func() (killed bool)) {
	t.Helper()
	pid := enginePID(t, dataDir)
	var (
		mu       sync.Mutex // of the next two
		traced   *tracer
		detached bool
	)
	// strace counts the renames of each thread for itself, and a refresh is the work of several. So the engine is
	// stopped after each rename, those are counted here, and the first one after n-1 of them, by whichever thread, is
	// deadly.
	const stopping, deadly = "signal=SIGSTOP", "error=EIO:signal=SIGKILL"
	arm := func() { // while the engine is stopped
		mu.Lock()
		defer mu.Unlock()
		defer syscall.Kill(pid, syscall.SIGCONT)
		if detached {
			return
		}
		traced.end()
		var err error
		if traced, err = trace(pid, deadly, func() {}); err != nil {
			t.Error(err)
		}
	}
	left, inject := n-1, stopping
	if left == 0 {
		inject = deadly
	}
	mu.Lock()
	var err error
	traced, err = trace(pid, inject, func() {
		if left--; left > 0 {
			syscall.Kill(pid, syscall.SIGCONT)
		} else if left == 0 {
			go arm() // which waits until this reader has ended
		}
	})
	mu.Unlock()
	switch {
	case errors.Is(err, errNoTrace):
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	}
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

var errNoTrace = errors.New("there is no strace to stop the engine at a chosen step, or this user may not trace it")

// A tracer is a strace of a process.
type tracer struct {
	command *exec.Cmd
	read    chan struct{} // closed when all that it said was read
}

// trace has a process do something to itself (man strace, inject) at each rename, and calls stopped after each SIGSTOP
// that it got. It returns when the process is traced, or errNoTrace.
func trace(pid int, inject string, stopped func()) (*tracer, error) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		return nil, errNoTrace
	}
	const renames = "rename,renameat,renameat2"
	c := exec.Command(strace, "-f", "-p", fmt.Sprint(pid), "-e", "trace="+renames, "-e", "inject="+renames+":"+inject)
	said, err := c.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	s := &tracer{c, make(chan struct{})}
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "Operation not permitted") {
			err = errNoTrace
		}
		if strings.Contains(lines.Text(), fmt.Sprintf("Process %d attached", pid)) {
			go s.follow(lines, stopped)
			return s, nil
		}
	}
	c.Wait()
	return nil, cmp.Or(err, errors.New("strace ended"))
}

func (s *tracer) follow(lines *bufio.Scanner, stopped func()) {
	defer close(s.read)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "--- SIGSTOP {") {
			stopped()
		}
	}
}

// tracerPatience is how long a strace may take to let go.
const tracerPatience = 10 * time.Second

// end lets go of the process, if there is a tracer. Of one that was killed strace may wait for the first thread, which
// ends after the others, and those are strace's to be waited for. So it is killed then.
func (s *tracer) end() {
	if s == nil {
		return
	}
	s.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.read:
	case <-time.After(tracerPatience):
		s.command.Process.Kill()
		<-s.read
	}
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
