package clickhouse_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/runlens/runlens/olap/clickhouse"
)

// expectSurvival fails the test where another engine answers than the one of pid.
func expectSurvival(t *testing.T, s *clickhouse.Server, dir string, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) {
		t.Errorf("engine %d died: %s", pid, lastOutput(dir))
	}
	if !works(s) {
		t.Error("the engine does not answer any more")
	}
	if now := enginePID(t, dir); now != pid {
		t.Errorf("engine %d was replaced by %d", pid, now)
	}
}

func lastOutput(dir string) string {
	content, _ := os.ReadFile(filepath.Join(dir, "engine", "engine.out"))
	return string(content[max(0, len(content)-400):])
}

// A stranger's connection can end anywhere inside a request.
func TestEngineSurvivesHalfRequests(t *testing.T) {
	dir := dataDir(t)
	s := open(t, config(dir))
	engine := published(t, dir)
	for range 40 {
		for _, bytes := range []string{
			"G", "GET / HT", "GET / HTTP/1.1\r\nHost: x\r\nAuthoriz", "POST / HTTP/1.1\r\nContent-Length: 100\r\n\r\nSELECT",
			"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nSEL", "GET /" + strings.Repeat("x", 9000),
			"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + strings.Repeat("\x7f", 32), // how TLS begins
			"\x00\x06client\x1a\x07\x00\x07default\x00",                                 // how the native protocol begins
		} {
			for _, reset := range []bool{false, true} {
				conn, err := net.Dial("tcp", engine.Addr)
				if err != nil {
					t.Fatalf("after %q: %v; %s", bytes, err, lastOutput(dir))
				}
				conn.Write([]byte(bytes))
				if reset {
					conn.(*net.TCPConn).SetLinger(0)
				}
				conn.Close()
			}
		}
	}
	expectSurvival(t, s, dir, engine.PID)
}

// A client's connection can end while its statement runs, or while its answer is being sent.
func TestEngineSurvivesAbortedQueries(t *testing.T) {
	dir := dataDir(t)
	s := open(t, config(dir))
	engine := published(t, dir)
	password, err := os.ReadFile(filepath.Join(dir, "engine", "password"))
	if err != nil {
		t.Fatal(err)
	}
	statements := []string{
		"SELECT+number+FROM+numbers(1000000000)", // an answer without end
		"SELECT+sum(sleepEachRow(0.01))+FROM+numbers(100)+SETTINGS+max_block_size=1",
		"SELECT+throwIf(number=99999)+FROM+numbers(100000)", // fails amid its answer
	}
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			for i := range 75 {
				request, _ := http.NewRequest(http.MethodPost, "http://"+engine.Addr+"/?readonly=2&"+
					"cancel_http_readonly_queries_on_client_close=1&query="+statements[i%len(statements)], nil)
				request.SetBasicAuth("runlens", string(password))
				conn, err := net.Dial("tcp", engine.Addr)
				if err != nil {
					t.Errorf("%v; %s", err, lastOutput(dir))
					return
				}
				request.Write(conn)
				// The moment of the end is a different one each time, from before the first byte of the answer to amid it.
				conn.SetReadDeadline(time.Now().Add(time.Duration(i%5) * 2 * time.Millisecond))
				io.CopyN(io.Discard, conn, 1<<(i%20))
				if i%2 == 0 {
					conn.(*net.TCPConn).SetLinger(0)
				}
				conn.Close()
			}
		})
	}
	clients.Wait()
	expectSurvival(t, s, dir, engine.PID)
}

// Whatever a process that leaves was doing, it does the engine of the others no harm.
func TestEngineSurvivesUsersThatLeaveAmidTheirQueries(t *testing.T) {
	dir := dataDir(t)
	s := open(t, config(dir))
	pid := enginePID(t, dir)
	for i := range 6 {
		p := launch(t, dir)
		p.expect("ready")
		for range 4 {
			p.say("stream")
			p.expect("streaming")
		}
		if i%2 == 0 {
			p.say("close")
			p.expect("closed")
		}
		p.kill()
		expectSurvival(t, s, dir, pid)
	}
}

// Who goes away while the engine writes to it must not end it. Linux tells for every process what it ignores; the Go
// runtime's own handler would end the process on threads that are not Go's.
func TestEngineIgnoresBrokenPipes(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	dir := dataDir(t)
	s := open(t, config(dir))
	pid := enginePID(t, dir)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "SigIgn:\t")
	ignored, err := strconv.ParseUint(rest[:16], 16, 64)
	if err != nil || ignored>>(syscall.SIGPIPE-1)&1 == 0 {
		t.Errorf("the engine ignores signals %#x (%v), not SIGPIPE", ignored, err)
	}
	for range 20 { // to whichever thread
		if err := syscall.Kill(pid, syscall.SIGPIPE); err != nil {
			t.Fatal(err)
		}
	}
	expectSurvival(t, s, dir, pid)
}
