package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/runlens/runlens/schema"
)

const (
	startPatience = 30 * time.Second
	stopPatience  = 10 * time.Second

	// unlimited is for limits that protect a server and would only disturb a measurement.
	unlimited = "1000000000"
	// clientsAtOnce is how many requests are answered at once; more than any scenario sends.
	clientsAtOnce = "64"
)

// runlens is a command of the measured binary. It sees none of our environment's settings.
func (b *bench) runlens(ctx context.Context, dataDir string, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, b.Runlens, append(args, "--data-dir", dataDir, "--engine-lib", b.EngineLib)...)
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "RUNLENS_") {
			command.Env = append(command.Env, variable)
		}
	}
	return command
}

// A server is a running `runlens serve`.
type server struct {
	bench   *bench
	process *exec.Cmd
	ended   chan error
	address string
}

// startServer starts the measured binary as a server on the engine of this run.
func (b *bench) startServer(ctx context.Context) (*server, error) {
	ready, log := filepath.Join(b.dir, "ready"), filepath.Join(b.dir, "server.log")
	s := &server{bench: b, ended: make(chan error, 1)}
	s.process = b.runlens(ctx, b.storeDir(), "serve", "--listen", "127.0.0.1:0", "--admin-listen", "off", "--ready-file", ready,
		"--rate-limit-per-minute", unlimited, "--verify-limit-per-minute", unlimited,
		"--org-concurrency", clientsAtOnce, "--global-concurrency", clientsAtOnce, "--query-timeout", "10m",
		"--maintenance-share", strconv.FormatFloat(b.Share, 'g', -1, 64))
	output, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer output.Close()
	s.process.Stdout, s.process.Stderr = output, output
	if err := s.process.Start(); err != nil {
		return nil, fmt.Errorf("%w; is %s built?", err, b.Runlens)
	}
	go func() { s.ended <- s.process.Wait() }()
	for deadline := time.Now().Add(startPatience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if address, err := os.ReadFile(ready); err == nil {
			s.address = string(address)
			return s, nil
		}
		select {
		case err := <-s.ended:
			text, _ := os.ReadFile(log)
			return nil, fmt.Errorf("the server ended: %v: %s", err, text)
		default:
		}
	}
	s.stop()
	return nil, fmt.Errorf("the server was not ready after %s", startPatience)
}

func (s *server) stop() {
	s.process.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.ended:
	case <-time.After(stopPatience):
		s.process.Process.Kill()
	}
}

// An apiClient asks the server on behalf of one organization, over connections that are kept.
type apiClient struct {
	url, key string
	http     *http.Client
}

// client makes a key for the organization.
func (s *server) client(ctx context.Context, organization schema.OrganizationID) (*apiClient, error) {
	out, err := s.bench.runlens(ctx, s.bench.storeDir(), "keys", "create", "--org", string(organization), "--output", "json").Output()
	if err != nil {
		return nil, fmt.Errorf("keys create: %w", err)
	}
	var created struct{ Key string }
	if err := json.Unmarshal(out, &created); err != nil {
		return nil, fmt.Errorf("keys create: %w", err)
	}
	return &apiClient{
		url: "http://" + s.address + "/api/v1/analytics/query", key: created.Key,
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}},
	}, nil
}

// query sends a request and reads the whole response.
func (c *apiClient) query(ctx context.Context, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+c.key)
	request.Header.Set("Content-Type", "application/json")
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, text)
	}
	return text, err
}
