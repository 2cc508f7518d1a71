package clickhouse_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/runlens/runlens/olap/clickhouse"
	"github.com/runlens/runlens/olap/olaptest/logtest"
)

func TestStandaloneEnginePrintsHowToReachIt(t *testing.T) {
	dir := dataDir(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var output logtest.Buffer
	ended := make(chan error, 1)
	go func() { ended <- clickhouse.RunStandalone(ctx, config(dir), &output, func() {}) }()

	passwordFile := filepath.Join(dir, "engine", "password")
	eventually(t, "the address is printed",
		func() bool { return strings.Contains(output.String(), "password file: "+passwordFile+"\n") })
	addr, pid := published(t, dir).Addr, enginePID(t, dir)
	if want := "address: http://" + addr + "\nuser: runlens\n"; !strings.HasPrefix(output.String(), want) {
		t.Errorf("printed %q, want it to begin with %q", output.String(), want)
	}
	password, err := os.ReadFile(passwordFile)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(output.String(), string(password)) {
		t.Error("the password is printed")
	}
	if status, answer := ask(t, addr, "runlens", string(password), "SELECT 1"); status != http.StatusOK {
		t.Errorf("what was printed does not work: %d %s", status, answer)
	}

	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the new address is printed", func() bool { return strings.Count(output.String(), "address: ") == 2 })
	pid = enginePID(t, dir)
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	expectGone(t, pid)
}

// Where the engine cannot listen none is started, which would never answer: the error names the flag and the cause.
func TestStandaloneEngineCannotListen(t *testing.T) {
	taken, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	// 192.0.2.1 is for documentation (RFC 5737), and no machine's.
	for address, cause := range map[string]error{
		taken.Addr().String(): syscall.EADDRINUSE, "192.0.2.1:0": syscall.EADDRNOTAVAIL,
	} {
		c := config(dataDir(t))
		c.Listen = address
		err := clickhouse.RunStandalone(t.Context(), c, io.Discard, func() {})
		if !errors.Is(err, cause) || !strings.Contains(err.Error(), "--listen") {
			t.Errorf("%s: %v", address, err)
		}
		if _, err := os.Stat(filepath.Join(c.DataDir, "engine", "engine.out")); err == nil {
			t.Errorf("%s: an engine was started", address)
		}
	}
}

// Who ends a start is not told that it failed: to run until a signal includes the start.
func TestStandaloneEngineIsStoppedWhileItStarts(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := config(dataDir(t))
	if err := clickhouse.RunStandalone(ctx, c, io.Discard, func() {}); err != nil {
		t.Error(err)
	}
	expectEngineEnded(t, c.DataDir)
	if _, err := clickhouse.Open(ctx, c); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "stopped") {
		t.Errorf("another user of the engine has the error %v", err)
	}
}

// A data directory whose name would not be the same for the engine is refused.
func TestDataDirectoryThatIsNotUTF8(t *testing.T) {
	expectRefusal(t, config(filepath.Join(t.TempDir(), "raw\xff")), "UTF-8", "RUNLENS_DATA_DIR")
}

// In a container the engine listens where it is configured to, and passwordless users stay out.
func TestEngineListensWhereConfigured(t *testing.T) {
	c := config(dataDir(t))
	c.Listen = "0.0.0.0:0"
	s := open(t, c)
	if !works(s) {
		t.Error("the engine does not answer")
	}
	if addr := published(t, c.DataDir).Addr; !strings.HasPrefix(addr, "127.0.0.1:") {
		t.Errorf("published address %s cannot be reached", addr)
	}
}

// An engine needs no temporary directory: a container whose root is read-only has none. What finding out its version
// leaves goes too.
func TestNoTemporaryDirectory(t *testing.T) {
	c := config(dataDir(t))
	t.Setenv("TMPDIR", "/proc") // nothing can be made in it
	open(t, c)
	if left, err := filepath.Glob(filepath.Join(c.DataDir, "engine", "clickhouse-local*")); len(left) > 0 || err != nil {
		t.Errorf("left: %v, %v", left, err)
	}
}
