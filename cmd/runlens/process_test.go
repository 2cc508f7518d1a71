package main

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/runlens/runlens/cmd/internal/harness"
)

// commandVariable makes this test binary the command runlens, as a process that can be killed.
const commandVariable = "RUNLENS_TEST_COMMAND"

func TestMain(m *testing.M) {
	tabPatience = time.Minute
	if os.Getenv(commandVariable) != "" {
		main()
	}
	forgetVariables()
	code := m.Run()
	endSpares()
	os.Exit(code)
}

// forgetVariables keeps the tests off the stores and servers of whoever runs them, which variables may name.
func forgetVariables() {
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		switch {
		case strings.HasPrefix(name, "RUNLENS_TEST_"), name == "RUNLENS_ENGINE_LIB":
		case strings.HasPrefix(name, "RUNLENS_"), strings.HasPrefix(name, "OTEL_"):
			os.Unsetenv(name)
		}
	}
}

// A process is a runlens command as a process of its own.
type process struct {
	*exec.Cmd
	out, err bytes.Buffer
	ended    chan struct{}
}

func spawn(t *testing.T, args ...string) *process {
	t.Helper()
	return spawnCommand(t, nil, os.Args[0], args...)
}

// spawnCommand starts a program that is, or becomes, a runlens command, with a standard input, nil for none.
func spawnCommand(t *testing.T, in *os.File, program string, args ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(program, args...), ended: make(chan struct{})}
	p.Env = append(os.Environ(), commandVariable+"=1")
	p.Stdout, p.Stderr = &p.out, &p.err
	if in != nil {
		p.Stdin = in
	}
	must(t, p.Start())
	go func() {
		p.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.Process.Kill()
		<-p.ended
	})
	return p
}

// killWithin kills a process at a random time, and reports whether it was still at work.
func (p *process) killWithin(longest time.Duration) bool {
	select {
	case <-p.ended:
		return false
	case <-time.After(time.Duration(rand.Int64N(int64(longest)))):
		p.Process.Kill()
		<-p.ended
		return !p.ProcessState.Success()
	}
}

// killEngine kills the embedded engine of a data directory at a random time; one that was killed
// before is started again first by whoever uses it.
func killEngine(t *testing.T, dir string) {
	t.Helper()
	time.Sleep(time.Duration(rand.Int64N(int64(300 * time.Millisecond))))
	killed := harness.Poll(t.Context(), time.Minute, 5*time.Millisecond, func() bool {
		pid := enginePID(dir)
		return pid > 0 && syscall.Kill(pid, syscall.SIGKILL) == nil
	})
	if !killed {
		t.Fatal("there was no engine to kill")
	}
}

// enginePID is the process of the embedded engine of a data directory, as it was published last; 0 for none.
func enginePID(dir string) int {
	var published struct{ PID int }
	text, err := os.ReadFile(filepath.Join(dir, "engine", "address.json"))
	if err == nil {
		err = json.Unmarshal(text, &published)
	}
	if err != nil {
		return 0
	}
	return published.PID
}
