// Package process runs the built runlens binary as a user would, for programs that measure or attack it: commands,
// a server of its own, and what the system reports of their processes.
package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/runlens/runlens/cmd/internal/harness"
)

// stopPatience is how long a process may take to end after SIGTERM before it is killed.
const stopPatience = 25 * time.Second

// pollInterval is how often a condition that another process brings about is checked.
const pollInterval = 20 * time.Millisecond

// A Product is the built binary and the data directory it works on.
type Product struct {
	Binary    string // of cmd/runlens
	EngineLib string // the embedded engine's library
	DataDir   string
	Cells     string // a file that names cells, in place of the one store; empty for none
	OpenFiles int    // the most files that a process of it may have open; 0 for the limit of this process
}

// Command is a command of the binary. It sees none of our environment's settings. When ctx is done it gets SIGTERM,
// and is killed if that does not end it.
func (p Product) Command(ctx context.Context, args ...string) *exec.Cmd {
	args = append([]string{p.Binary}, append(args, "--data-dir", p.DataDir, "--engine-lib", p.EngineLib)...)
	if p.Cells != "" {
		args = append(args, "--cells", p.Cells)
	}
	if p.OpenFiles > 0 {
		args = append([]string{"sh", "-c", `ulimit -n "$0" && exec "$@"`, strconv.Itoa(p.OpenFiles)}, args...)
	}
	command := exec.CommandContext(ctx, args[0], args[1:]...)
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = stopPatience
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "RUNLENS_") {
			command.Env = append(command.Env, variable)
		}
	}
	return command
}

// A running is a process of a command.
type running struct {
	process *exec.Cmd
	ended   chan struct{} // closed when the process is gone
	failure error         // how it ended; valid once ended is closed
}

func (r *running) start(p Product) error {
	r.ended = make(chan struct{})
	if err := r.process.Start(); err != nil {
		return fmt.Errorf("%w; is %s built?", err, p.Binary)
	}
	return nil
}

func (r *running) wait() {
	r.failure = r.process.Wait()
	close(r.ended)
}

// Stop ends the process as an operator would, and with SIGKILL if that does not end it. The engine goes on while
// another process uses it.
func (r *running) Stop() {
	_ = r.process.Process.Signal(syscall.SIGTERM)
	select {
	case <-r.ended:
	case <-time.After(stopPatience):
		r.Kill()
		<-r.ended
	}
}

// Kill ends the process with SIGKILL.
func (r *running) Kill() { _ = r.process.Process.Kill() }

// A Key is an API key as `runlens keys create` prints it.
type Key struct {
	ID  string `json:"key_id"`
	Key string `json:"key"`
}

// CreateKey makes a key that may read the organization's rows, unless further flags say something else.
func (p Product) CreateKey(ctx context.Context, organization string, flags ...string) (Key, error) {
	var created Key
	args := append([]string{"keys", "create", "--org", organization, "--output", "json"}, flags...)
	out, err := p.Command(ctx, args...).Output()
	if err == nil {
		err = json.Unmarshal(out, &created)
	}
	if err != nil {
		return Key{}, fmt.Errorf("keys create: %w", explain(err))
	}
	return created, nil
}

// explain adds what a failed command wrote to standard error.
func explain(err error) error {
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return fmt.Errorf("%w: %s", err, failed.Stderr)
	}
	return err
}

// An Engine is what the embedded engine of a data directory publishes about itself (package clickhouse).
type Engine struct {
	Addr string // host:port of its HTTP interface
	PID  int
}

// Engine returns what the last engine published, whether it still runs or not.
func (p Product) Engine() (Engine, error) {
	var e Engine
	text, err := os.ReadFile(filepath.Join(p.DataDir, "engine", "address.json"))
	if err == nil {
		err = json.Unmarshal(text, &e)
	}
	return e, err
}

// KillEngine ends the engine with SIGKILL, as a crash would. It kills no process but one of the product's own binary.
func (p Product) KillEngine() error {
	e, err := p.Engine()
	if err != nil {
		return err
	}
	if !p.runs(e.PID) {
		return fmt.Errorf("the process %d is no engine of %s", e.PID, p.Binary)
	}
	return syscall.Kill(e.PID, syscall.SIGKILL)
}

// AwaitEngineEnd waits until the engine, which ends after its last user, is gone, and kills it if it does not end.
func (p Product) AwaitEngineEnd() {
	e, err := p.Engine()
	if err != nil {
		return // none was ever started
	}
	ended := func() bool { return !p.runs(e.PID) }
	if !harness.Poll(context.Background(), stopPatience, pollInterval, ended) {
		_ = syscall.Kill(e.PID, syscall.SIGKILL)
	}
}

// runs reports whether a process of the product's binary has this id. An ended one that nobody has waited for has no
// executable.
func (p Product) runs(pid int) bool {
	program, err := os.Stat(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return false
	}
	ours, err := os.Stat(p.Binary)
	return err == nil && os.SameFile(program, ours)
}
