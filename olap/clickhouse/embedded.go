package clickhouse

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// ErrEngineEnded is returned when the embedded engine ended while it was starting.
var ErrEngineEnded = errors.New("the embedded engine ended while starting")

// An engine is this process's membership in an embedded engine: the shared users lock, and the
// supervision that starts the engine again when it dies.
type engine struct {
	config   Config
	layout   layout
	library  string
	password string
	logger   *slog.Logger
	users    *fileLock
	child    *child // the engine's process, where this process started it; nil for none
	reported int    // the process of the engine whose death was logged last
	stop     context.CancelFunc
	stopped  chan struct{}
	reserve  sync.WaitGroup // of keepReserve
	warnRoot sync.Once
}

// openEngine joins the engine of the data directory, starting it when there is none, and supervises
// it until close.
func openEngine(ctx context.Context, config Config) (*engine, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	e := &engine{config: config, layout: layoutOf(config.DataDir), logger: config.Logger, stopped: make(chan struct{})}
	var err error
	if e.library, err = findLibrary(config.EngineLib); err != nil {
		return nil, err
	}
	if err := e.layout.create(); err != nil {
		return nil, fmt.Errorf("data directory %s: %w", config.DataDir, explain(err, ""))
	}
	// From here on the engine, if there is one, does not end by itself.
	if e.users, err = lockShared(ctx, e.layout.usersLock()); err != nil {
		return nil, fmt.Errorf("wait for the ending engine of %s: %w", config.DataDir, explain(err, ""))
	}
	if err := e.startOrJoin(ctx); err != nil {
		e.users.release()
		return nil, fmt.Errorf("data directory %s: %w", config.DataDir, err)
	}
	background, stop := context.WithCancel(context.Background())
	e.stop = stop
	go e.supervise(background)
	if !config.Ephemeral {
		e.reserve.Go(func() { e.keepReserve(background) })
	}
	return e, nil
}

// close leaves the engine. It ends when this was its last user.
func (e *engine) close() {
	e.stop()
	<-e.stopped
	e.reserve.Wait()
	e.users.release()
}

// restartPatience is how long a connection waits for an engine that is being started again. An attempt that has begun
// by then may still succeed.
const restartPatience = 3 * time.Second

// errNoEngine is the failure to reach the embedded engine within restartPatience.
var errNoEngine = errors.New("the embedded engine does not answer")

// dial connects to wherever the engine is now, and waits while it is being started again.
func (e *engine) dial(ctx context.Context, _ string) (net.Conn, error) {
	began := time.Now()
	tick := time.NewTicker(lockPollInterval)
	defer tick.Stop()
	for {
		conn, err := e.reach(ctx)
		if err == nil {
			return conn, nil
		}
		if ctx.Err() != nil || time.Since(began) > restartPatience {
			return nil, fmt.Errorf("%w: %w", errNoEngine, err)
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// reach connects to the published engine: a new one listens on another port, and another program may have the old one.
func (e *engine) reach(ctx context.Context) (net.Conn, error) {
	a, err := e.layout.readAddress()
	if err != nil {
		return nil, fmt.Errorf("the embedded engine is not ready: %w", err)
	}
	return a.dial(ctx, "", "")
}

// startOrJoin returns once an engine answers. Whoever gets the engine lock starts one; everybody else
// waits for that one, or for its failure, which sets the lock free again.
func (e *engine) startOrJoin(ctx context.Context) error {
	tick := time.NewTicker(lockPollInterval)
	defer tick.Stop()
	for {
		lock, err := tryLockExclusive(e.layout.engineLock())
		if err != nil {
			return explain(err, "")
		}
		if lock != nil {
			return e.start(ctx, lock)
		}
		if e.join(ctx) {
			return nil
		}
		select {
		case <-ctx.Done():
			return notStarted(ctx, "the engine that has locked "+e.layout.engineLock()+" does not answer")
		case <-tick.C:
		}
	}
}

// join reports whether the published engine answers. An open port proves nothing: reach has it prove who it is.
func (e *engine) join(ctx context.Context) bool {
	conn, err := e.reach(ctx)
	if err != nil {
		return false
	}
	conn.Close()
	e.password, err = e.layout.readPassword()
	return err == nil
}

// start starts a new engine and returns once it answers. It takes over the engine lock, which the
// child inherits, so that it is held without a gap until the child's end, whatever becomes of this process.
func (e *engine) start(ctx context.Context, lock *fileLock) error {
	defer lock.release()
	if os.Geteuid() == 0 {
		e.warnRoot.Do(func() {
			e.logger.Warn("the embedded engine runs as root; run runlens as a user of its own, who owns the data directory")
		})
	}
	// The folder may have come into other hands since it was made.
	if err := e.layout.own(); err != nil {
		return explain(err, "")
	}
	began := time.Now()
	if err := os.Remove(e.layout.address()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return explain(err, "")
	}
	// Of a backup that ended with its engine, nothing stays.
	if err := os.RemoveAll(e.layout.backups()); err != nil {
		return explain(err, "")
	}
	version, err := e.layout.adoptVersion(e.library)
	if err != nil {
		return explain(err, "")
	}
	if e.password, err = e.layout.readPassword(); err != nil {
		return explain(err, "")
	}
	task := childTask{
		Library: e.library, Dir: e.layout.dir, Challenge: newChallenge(), Version: version,
		MemoryBytes: e.config.EngineMemoryBytes, Listen: cmp.Or(e.config.Listen, "127.0.0.1:0"),
	}
	if e.config.Ephemeral {
		task.RemoveDir = e.config.DataDir
	}
	if err := startable(task.Listen); err != nil {
		return err
	}
	child, err := e.spawn(task, lock)
	if err != nil {
		return explain(err, "")
	}
	tick := time.NewTicker(lockPollInterval)
	defer tick.Stop()
	for {
		if a, err := e.layout.readAddress(); err == nil && a.challenge == task.Challenge {
			e.logger.Info("embedded engine started", "version", version, "pid", a.PID, "took",
				time.Since(began).Round(time.Millisecond))
			e.child = child
			return nil
		}
		select {
		case err := <-child.ended:
			report := e.layout.report()
			e.logger.Error("embedded engine ended while starting", "status", err, "log", lastLines(report, 10))
			err = fmt.Errorf("%w; its log is %s", ErrEngineEnded, e.layout.log())
			if diskFull(e.layout.dir) {
				err = fmt.Errorf("%w: %w", err, syscall.ENOSPC)
			}
			return explain(err, report)
		case <-ctx.Done():
			err := notStarted(ctx, "the embedded engine did not answer in time")
			if errors.Is(err, context.Canceled) {
				return err
			}
			return explain(err, e.layout.report())
		case <-tick.C:
		}
	}
}

// notStarted is the error of a start whose ctx is done: too late, in the words of text, or stopped by its caller.
func notStarted(ctx context.Context, text string) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		text = "stopped while the embedded engine was starting"
	}
	return fmt.Errorf("%s: %w", text, ctx.Err())
}

// spawn runs the task with the lock as descriptor 3 and new logs, of which the previous ones are kept.
func (e *engine) spawn(task childTask, lock *fileLock) (*child, error) {
	for _, path := range []string{e.layout.log(), e.layout.output()} {
		if err := os.Rename(path, path+".previous"); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	output, err := os.OpenFile(e.layout.output(), os.O_CREATE|os.O_WRONLY|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer output.Close()
	cmd, err := task.command()
	if err != nil {
		return nil, err
	}
	cmd.Dir = e.layout.dir
	cmd.Stdout, cmd.Stderr = output, output
	cmd.ExtraFiles = []*os.File{lock.file}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &child{pid: cmd.Process.Pid, ended: make(chan error, 1)}
	go func() { c.ended <- cmd.Wait() }() // collected whenever it ends, so that it never stays a zombie
	return c, nil
}

// A child is an engine that this process started.
type child struct {
	pid   int
	ended chan error // receives how the process ended: nil, or its exit status or signal
}
