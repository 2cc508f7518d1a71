package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/runlens/runlens/cmd/internal/process"
)

const (
	// plenty is for limits that would only disturb a proof.
	plenty = "1000000000"
	// deadline is the server's --query-timeout: the longest time to work on one request.
	deadline = 30 * time.Second
)

// A target is the server of one part.
type target struct {
	soak    *soak
	product process.Product
	server  *process.Server
	memory  *memoryWatch
	dir     string
}

// start starts a server on an empty store. Its rates don't limit; its concurrency does.
func (s *soak) start(ctx context.Context) (*target, error) { return s.startWithin(ctx, 0) }

// startWithin is start with a limit of open files for the product's processes; 0 for that of this process.
func (s *soak) startWithin(ctx context.Context, files int) (*target, error) {
	dir := filepath.Join(s.folder.Dir, s.part)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	t := &target{soak: s, dir: dir}
	t.product = process.Product{Binary: s.Runlens, EngineLib: s.EngineLib, DataDir: filepath.Join(dir, "store"),
		OpenFiles: files}
	flags := append([]string{"--admin-listen", "127.0.0.1:0", "--query-timeout", deadline.String(),
		"--rate-limit-per-minute", plenty, "--verify-limit-per-minute", plenty}, s.Serve...)
	var err error
	if t.server, err = t.product.Serve(ctx, dir, flags...); err != nil {
		return nil, err
	}
	t.memory = watchMemory(t)
	return t, nil
}

// close stops the server as an operator would and removes its data.
func (t *target) close() {
	t.memory.stop()
	t.server.Stop()
	t.product.AwaitEngineEnd()
	os.RemoveAll(t.product.DataDir)
}

// alive returns an error when the server's process is gone.
func (t *target) alive() error {
	select {
	case <-t.server.Ended():
		return errors.New("the server is gone")
	default:
		return nil
	}
}

// client makes a key for the organization and returns a client that uses it.
func (t *target) client(ctx context.Context, organization string) (*client, error) {
	key, err := t.product.CreateKey(ctx, organization)
	if err != nil {
		return nil, err
	}
	return newClient(t.server.Address, key.Key), nil
}

// ingest stores a file with `runlens ingest` and returns its summary.
func (t *target) ingest(ctx context.Context, file string) (stored int, err error) {
	command := t.product.Command(ctx, "ingest", "--json", file)
	out, err := command.Output()
	if err != nil {
		return 0, fmt.Errorf("ingest: %w", err)
	}
	return storedRuns(out)
}

// descriptors is how many files the server has open.
func (t *target) descriptors(ctx context.Context) (int64, error) {
	values, err := t.server.Metrics(ctx, "process_open_fds")
	if err != nil {
		return 0, err
	}
	return int64(values[0]), nil
}
