package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/cmd/internal/harness"
	"github.com/runlens/runlens/cmd/internal/process"
	"github.com/runlens/runlens/ingest/worker"
)

// verifiedWithRejects is the exit code of `verify` where nothing differs and some rows of the source break a rule.
const verifiedWithRejects = 3

// A sourceCopy is a database, and a store into which workers copy it.
type sourceCopy struct {
	name    string
	url     string // of the database that is read
	truth   string // of the one that the store must be equal to
	mapping string // file
	store   *killStore
	conn    driver.Conn
	workers []*copyWorker
}

// open makes the store.
func (c *sourceCopy) open(ctx context.Context, s *soak, dir, mapping string) (err error) {
	if c.store, err = openKillStore(ctx, s, dir); err != nil {
		return err
	}
	server, err := c.store.open(ctx)
	if err != nil {
		return err
	}
	c.conn, c.mapping = server.Conn(), filepath.Join(dir, "mapping.sql")
	return os.WriteFile(c.mapping, []byte(mapping), 0o600)
}

// start starts the workers, in place of those that run.
func (c *sourceCopy) start(flags ...string) (err error) {
	c.stop()
	for i := range c.workers {
		if c.workers[i], err = c.startWorker(i, flags); err != nil {
			return err
		}
	}
	return nil
}

func (c *sourceCopy) stop() {
	for _, w := range c.workers {
		if w != nil {
			w.stop()
		}
	}
}

func (c *sourceCopy) close() {
	c.stop()
	c.store.close()
}

// verify runs `runlens verify` and returns what differs.
func (c *sourceCopy) verify(ctx context.Context) (differs string) {
	out, err := c.store.output(ctx, "verify", "--recheck-after", "0s", "--source", c.truth, "--mapping", c.mapping)
	var ended *exec.ExitError
	if err == nil || errors.As(err, &ended) && ended.ExitCode() == verifiedWithRejects {
		return ""
	}
	return fmt.Sprintf("%v: %s", err, strings.ReplaceAll(lastOf(out), "\n", "; "))
}

// unready is why a worker is not ready.
func (c *sourceCopy) unready(ctx context.Context) string {
	for _, w := range c.workers {
		if why := w.unready(ctx); why != "" {
			return why
		}
	}
	return ""
}

// A copyWorker is a running `runlens worker`.
type copyWorker struct {
	process *exec.Cmd
	log     string
	gone    chan struct{} // closed when it has ended
	address string        // its admin address
}

func (c *sourceCopy) startWorker(number int, flags []string) (*copyWorker, error) {
	w := &copyWorker{log: filepath.Join(c.store.dir, fmt.Sprintf("worker%d.log", number)), gone: make(chan struct{})}
	w.process = c.store.product.Command(c.store.life, append([]string{"worker", "--source", asReader(c.url),
		"--mapping", c.mapping, "--admin-listen", "127.0.0.1:0", "--rejects", w.log + ".rejects"}, flags...)...)
	log, err := os.Create(w.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	w.process.Stderr = log
	if err := w.process.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = w.process.Wait() // who stops it knows why it ended
		close(w.gone)
	}()
	if !harness.Poll(c.store.life, sourcePatience, openPoll, func() bool {
		w.address, err = process.AdminAddressIn(w.log)
		return err == nil
	}) {
		w.stop()
		return nil, err
	}
	return w, nil
}

func (w *copyWorker) stop() {
	_ = w.process.Process.Signal(syscall.SIGTERM)
	select {
	case <-w.gone:
	case <-time.After(sourcePatience):
		_ = w.process.Process.Kill()
		<-w.gone
	}
}

// get reads from the admin address.
func (w *copyWorker) get(ctx context.Context, path string) (status int, body []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+w.address+path, nil)
	if err != nil {
		return 0, nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	body, err = io.ReadAll(response.Body)
	return response.StatusCode, body, err
}

func (w *copyWorker) unready(ctx context.Context) string {
	status, body, err := w.get(ctx, "/readyz")
	if err != nil || status != http.StatusOK {
		return fmt.Sprintf("%d %s %v", status, strings.TrimSpace(string(body)), err)
	}
	return ""
}

func (w *copyWorker) report(ctx context.Context) (report worker.Report, err error) {
	_, body, err := w.get(ctx, "/status")
	if err == nil {
		err = json.Unmarshal(body, &report)
	}
	return report, err
}
