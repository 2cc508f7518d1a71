package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/runlens/runlens/cmd/internal/harness"
)

// A Keeper is a running `runlens engine`. It keeps the engine of a data directory, and starts it again when it dies.
type Keeper struct{ running }

// Keep starts a keeper and returns once an engine runs. The folder dir takes its log.
func (p Product) Keep(ctx context.Context, dir string) (*Keeper, error) {
	log, err := os.OpenFile(filepath.Join(dir, "keeper.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	k := &Keeper{running{process: p.Command(ctx, "engine")}}
	k.process.Stderr = log
	said, err := k.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := k.start(p); err != nil {
		return nil, err
	}
	// It says where the engine listens once one runs. Before that the last one may be ending.
	_, err = bufio.NewReader(said).ReadString('\n')
	go k.wait()
	if err != nil {
		k.Stop()
		return nil, fmt.Errorf("the keeper ended, see %s: %w", log.Name(), err)
	}
	return k, nil
}

// AwaitEngine waits until an engine runs that has published itself.
func (p Product) AwaitEngine(ctx context.Context) (Engine, error) {
	var e Engine
	if !harness.Poll(ctx, startPatience, pollInterval, func() bool {
		var err error
		e, err = p.Engine()
		return err == nil && p.runs(e.PID)
	}) {
		return Engine{}, errors.Join(fmt.Errorf("no engine ran within %s", startPatience), ctx.Err())
	}
	return e, nil
}
