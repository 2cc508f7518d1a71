package process

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const startPatience = 30 * time.Second

// A Server is a running `runlens serve`.
type Server struct {
	running
	Address string // of the API, host:port
	log     string
}

// Serve starts a server on a free port and returns once it accepts requests. The folder dir takes its log and ready
// file.
func (p Product) Serve(ctx context.Context, dir string, flags ...string) (*Server, error) {
	ready := filepath.Join(dir, "ready")
	s := &Server{log: filepath.Join(dir, "server.log")}
	// The file of a server that was killed names an address at which nobody listens.
	if err := os.Remove(ready); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	s.process = p.Command(ctx, append([]string{"serve", "--listen", "127.0.0.1:0", "--ready-file", ready}, flags...)...)
	output, err := os.Create(s.log)
	if err != nil {
		return nil, err
	}
	defer output.Close()
	s.process.Stdout, s.process.Stderr = output, output
	if err := s.start(p); err != nil {
		return nil, err
	}
	go s.wait()
	for deadline := time.Now().Add(startPatience); time.Now().Before(deadline); time.Sleep(pollInterval) {
		if address, err := os.ReadFile(ready); err == nil {
			s.Address = string(address)
			return s, nil
		}
		select {
		case <-s.ended:
			text, _ := os.ReadFile(s.log)
			return nil, fmt.Errorf("the server ended: %v: %s", s.failure, text)
		default:
		}
	}
	s.Stop()
	return nil, fmt.Errorf("the server was not ready after %s", startPatience)
}

// PID is the id of the server's process.
func (s *Server) PID() int { return s.process.Process.Pid }

// Ended is closed when the server's process is gone.
func (s *Server) Ended() <-chan struct{} { return s.ended }

// Pause stops the server's process like a machine that was paused, until Resume.
func (s *Server) Pause() { _ = s.process.Process.Signal(syscall.SIGSTOP) }

// Resume lets it go on.
func (s *Server) Resume() { _ = s.process.Process.Signal(syscall.SIGCONT) }

// LogFile is where the server writes its log.
func (s *Server) LogFile() string { return s.log }

// AdminAddress is the admin address, host:port, as in the server's log.
func (s *Server) AdminAddress() (string, error) { return AdminAddressIn(s.log) }

// AdminAddressIn is the admin address, host:port, of a process that writes a log.
func AdminAddressIn(file string) (string, error) {
	log, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer log.Close()
	for lines := bufio.NewScanner(log); lines.Scan(); {
		var line struct{ Msg, Address string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "serving the admin address" {
			return line.Address, nil
		}
	}
	return "", errors.New("the log names no admin address")
}

// metricsPatience bounds a reading of metrics.
const metricsPatience = 10 * time.Second

// Metrics reads numbers without labels from the metrics of the admin address; 0 for one that is not there.
func (s *Server) Metrics(ctx context.Context, names ...string) ([]float64, error) {
	address, err := s.AdminAddress()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, metricsPatience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("the admin address does not answer: %w", err)
	}
	defer response.Body.Close()
	values := make([]float64, len(names))
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		for i, name := range names {
			if text, found := strings.CutPrefix(lines.Text(), name+" "); found {
				if values[i], err = strconv.ParseFloat(text, 64); err != nil {
					return nil, err
				}
			}
		}
	}
	return values, lines.Err()
}
