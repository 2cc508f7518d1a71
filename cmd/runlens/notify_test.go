package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A manager is a stand-in for a service manager: the socket that it reads, and what came.
type manager struct {
	t    *testing.T
	conn *net.UnixConn
	of   *process // whose log is shown if it is silent; nil for none
}

// manage makes a service manager for the processes that the test starts. Its watchdog wants to hear of them at least
// so often, in microseconds; 0 for never.
func manage(t *testing.T, interval string) *manager {
	t.Helper()
	dir, err := os.MkdirTemp("", "notify-") // a socket's path must be short
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", interval)
	return &manager{t: t, conn: conn}
}

// hears returns the next message that is not skip.
func (m *manager) hears(skip string) string {
	m.t.Helper()
	m.conn.SetReadDeadline(time.Now().Add(time.Minute))
	for {
		var space [512]byte
		n, err := m.conn.Read(space[:])
		if err != nil {
			log := ""
			if m.of != nil {
				m.of.Process.Kill()
				<-m.of.ended
				log = m.of.err.String()
			}
			m.t.Fatalf("nothing came: %v\n%s", err, log)
		}
		if got := string(space[:n]); got != skip {
			return got
		}
	}
}

// has returns a message that has come, without waiting for one.
func (m *manager) has() (message string) {
	m.t.Helper()
	raw, err := m.conn.SyscallConn()
	must(m.t, err)
	var space [512]byte
	if err := raw.Control(func(fd uintptr) {
		if n, _, err := syscall.Recvfrom(int(fd), space[:], syscall.MSG_DONTWAIT); err == nil {
			message = string(space[:n])
		}
	}); err != nil {
		m.t.Fatal(err)
	}
	return message
}

// A service manager hears that a service runs, again and again that it still does, and that it stops.
func TestServiceManager(t *testing.T) {
	flags := store(t)
	source := "postgres://nobody@127.0.0.1:1/nothing?connect_timeout=1" // it waits for a database that is away
	for name, args := range map[string][]string{
		"server":               {"serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"},
		"server without admin": {"serve", "--listen", "127.0.0.1:0", "--admin-listen", "off"},
		"worker":               {"worker", "--source", source, "--admin-listen", "127.0.0.1:0"},
		"engine":               {"engine", "run"},
	} {
		m := manage(t, "200000")
		p := spawn(t, append(args, flags...)...)
		m.of = p
		for i, want := range []string{"READY=1", "WATCHDOG=1", "WATCHDOG=1", "WATCHDOG=1"} {
			if got := m.hears(""); got != want {
				t.Fatalf("%s: message %d is %q, want %q", name, i, got, want)
			}
		}
		p.Process.Signal(syscall.SIGTERM)
		if got := m.hears("WATCHDOG=1"); got != "STOPPING=1" {
			t.Errorf("%s: after a signal came %q", name, got)
		}
		<-p.ended
		if p.ProcessState.ExitCode() != 0 {
			t.Errorf("%s: %s\n%s", name, p.ProcessState, p.err.String())
		}
	}
}

// The watchdog hears nothing of a process whose admin address does not answer, and again when it does.
func TestWatchdogHearsOnlyOfWhatAnswers(t *testing.T) {
	m := manage(t, "0")
	var log strings.Builder
	asked := make(chan error)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		alive := func(context.Context) error { return <-asked }
		watchdog(ctx, time.Millisecond, alive, slog.New(slog.NewTextHandler(&log, nil)))
	}()
	asked <- nil
	if got := m.hears(""); got != "WATCHDOG=1" {
		t.Errorf("came %q", got)
	}
	asked <- errors.New("nothing answers")
	asked <- errors.New("nothing answers") // what the first failure had sent is there when the second is taken
	m.conn.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	var space [512]byte
	if n, err := m.conn.Read(space[:]); err == nil {
		t.Errorf("%q came although nothing answers", space[:n])
	}
	asked <- nil
	if got := m.hears(""); got != "WATCHDOG=1" {
		t.Errorf("came %q", got)
	}
	cancel()
	close(asked)
	<-ended
	if strings.Count(log.String(), "does not answer") != 2 {
		t.Errorf("logged %s", log.String())
	}
}

// A process that ends at once has told that it stops.
func TestStoppingIsToldBeforeTheEnd(t *testing.T) {
	m := manage(t, "0")
	for range 200 {
		ctx, cancel := context.WithCancel(context.Background())
		told := stopping(ctx, slog.New(slog.DiscardHandler))
		cancel()
		told()
		if got := m.has(); got != "STOPPING=1" {
			t.Fatalf("%q was told", got)
		}
	}
}

// The health check passes on what the admin address says, and tells apart who is not ready and who is not there.
func TestHealth(t *testing.T) {
	answers := map[string]int{"/readyz": http.StatusServiceUnavailable, "/healthz": http.StatusOK}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(answers[r.URL.Path])
		io.WriteString(w, "the store does not \x1b[2Janswer\n")
	})}
	go server.Serve(listener)
	defer server.Close()
	address := listener.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--admin-listen", address}, 1, "answers 503: the store does not "},
		{[]string{"--admin-listen", address, "--live"}, 0, "the store does not "},
		{[]string{"--admin-listen", "0.0.0.0:" + port, "--live"}, 0, "the store does not "},
		{[]string{"--admin-listen", ":" + port, "--live"}, 0, "the store does not "},
		{[]string{"--admin-listen", "127.0.0.1:1"}, 1, "nothing answers at 127.0.0.1:1"},
		{[]string{"--admin-listen", "off"}, 2, "--admin-listen is off"},
		{[]string{"--admin-listen", "nowhere"}, 2, "is no address"},
	} {
		code, out, errs := command(t, "", append([]string{"health"}, c.args...)...)
		if said := out + errs; code != c.code || !strings.Contains(said, c.says) || strings.Contains(said, "\x1b") {
			t.Errorf("%v: exit code %d: %q", c.args, code, said)
		}
	}
}
