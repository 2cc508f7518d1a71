// Package redistest starts real Redis servers for tests.
package redistest

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A Server is a Redis of a test, on a Unix socket. Without persistence it forgets everything when it ends.
type Server struct {
	t       testing.TB
	Dir     string // of the socket, short enough for the path of one
	args    []string
	command *exec.Cmd
}

// Start starts a Redis with further settings (name, value pairs; the words of a value are apart), or skips the test
// where none is installed.
func Start(t testing.TB, settings ...string) *Server {
	t.Helper()
	program, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("no redis-server on the PATH: the limits over servers are not tested")
	}
	dir, err := os.MkdirTemp("", "redis-")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{t: t, Dir: dir, args: []string{program, "--port", "0", "--unixsocket", filepath.Join(dir, "sock"),
		"--dir", dir, "--save", "", "--daemonize", "no", "--loglevel", "warning"}}
	for i := 0; i < len(settings); i += 2 {
		s.args = append(append(s.args, "--"+settings[i]), strings.Fields(settings[i+1])...)
	}
	t.Cleanup(func() {
		s.Kill()
		os.RemoveAll(dir)
	})
	s.Restart()
	return s
}

// URL is the server's address.
func (s *Server) URL() string { return "unix://" + filepath.Join(s.Dir, "sock") }

// Restart starts the server, which is not running, and returns when it answers.
func (s *Server) Restart() {
	s.t.Helper()
	s.command = exec.Command(s.args[0], s.args[1:]...)
	if err := s.command.Start(); err != nil {
		s.t.Fatal(err)
	}
	for until := time.Now().Add(time.Minute); !s.answers(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			s.t.Fatal("the Redis of the test doesn't answer")
		}
	}
}

func (s *Server) answers() bool {
	connection, err := net.Dial("unix", filepath.Join(s.Dir, "sock"))
	if err != nil {
		return false
	}
	defer connection.Close()
	fmt.Fprint(connection, "PING\r\n")
	line, _ := bufio.NewReader(connection).ReadString('\n')
	return strings.HasPrefix(line, "+PONG") || strings.HasPrefix(line, "-NOAUTH")
}

// Kill kills the server, if it runs.
func (s *Server) Kill() {
	if s.command != nil {
		s.command.Process.Kill()
		s.command.Wait()
		s.command = nil
	}
}

// Pause stops the server: its connections stay open, and nothing is answered before Resume.
func (s *Server) Pause() { s.command.Process.Signal(syscall.SIGSTOP) }

// Resume ends a Pause.
func (s *Server) Resume() { s.command.Process.Signal(syscall.SIGCONT) }

// Do runs a command and returns what redis-cli prints of the answer.
func (s *Server) Do(command ...string) string {
	s.t.Helper()
	args := append([]string{"-s", filepath.Join(s.Dir, "sock"), "--no-raw"}, command...)
	out, err := exec.Command("redis-cli", args...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("redis-cli %s: %v: %s", command[0], err, out)
	}
	return strings.TrimSpace(string(out))
}
