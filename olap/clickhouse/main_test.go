package clickhouse_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/runlens/runlens/olap/clickhouse"
	"github.com/runlens/runlens/olap/clickhouse/clickhousetest"
)

// memberVariable makes the test binary a member: a further process that uses the engine of the data
// directory it names and obeys the lines of its standard input.
const memberVariable = "RUNLENS_TEST_MEMBER"

// patience bounds every wait of these tests; none is expected to take a tenth of it.
const patience = 30 * time.Second

func TestMain(m *testing.M) {
	if dir, ok := os.LookupEnv(memberVariable); ok {
		os.Exit(member(dir))
	}
	code := m.Run()
	for _, end := range atExit {
		end()
	}
	os.Exit(code)
}

func member(dir string) int {
	c := config(dir)
	c.Ephemeral = len(os.Args) > 1 && os.Args[1] == "ephemeral"
	s, err := clickhouse.Open(context.Background(), c)
	if err != nil {
		fmt.Println("failed:", err)
		return 1
	}
	fmt.Println("ready")
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		switch lines.Text() {
		case "query":
			version, err := s.Version(context.Background())
			fmt.Println("answer", version, err)
		case "stream": // reads an answer without end until the process ends
			rows, err := s.Conn().Query(context.Background(), "SELECT number FROM numbers(1000000000000)")
			if err != nil {
				fmt.Println("failed:", err)
				return 1
			}
			fmt.Println("streaming", rows.Next())
			go func() {
				for rows.Next() {
				}
			}()
		case "close":
			fmt.Println("closed", s.Close())
		}
	}
	return 0
}

func config(dir string) clickhouse.Config {
	return clickhouse.Config{
		DataDir:   dir,
		EngineLib: clickhousetest.Library(),
		Logger:    slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
}

// dataDir returns a new data directory, which is removed once the engine that is left in it has ended.
func dataDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "runlens-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		expectEngineEnded(t, dir)
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// expectEngineEnded waits until no engine holds the engine lock of dir.
func expectEngineEnded(t *testing.T, dir string) {
	t.Helper()
	file, err := os.Open(filepath.Join(dir, "engine", "engine.lock"))
	if err != nil {
		return // none was ever started
	}
	defer file.Close()
	eventually(t, "the engine of "+dir+" ended", func() bool {
		return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
	})
}

// open opens the engine of dir in this process and closes it at the end of the test.
func open(t *testing.T, config clickhouse.Config) *clickhouse.Server {
	t.Helper()
	s, err := clickhouse.Open(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// A process is a running member.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	input interface{ Write([]byte) (int, error) }
	lines chan string
}

// launch starts a member on dir. It need not be ready on return.
func launch(t *testing.T, dir string, args ...string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), memberVariable+"="+dir)
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, cmd: cmd, input: input, lines: make(chan string, 100)}
	go func() {
		defer close(p.lines)
		for scanner := bufio.NewScanner(output); scanner.Scan(); {
			p.lines <- scanner.Text()
		}
	}()
	t.Cleanup(p.kill)
	return p
}

// kill ends the process as SIGKILL does; it may have ended before.
func (p *process) kill() {
	p.cmd.Process.Kill()
	p.cmd.Wait()
}

// expect waits for the next line of output, which must begin with prefix.
func (p *process) expect(prefix string) {
	p.t.Helper()
	select {
	case line := <-p.lines:
		if !strings.HasPrefix(line, prefix) {
			p.t.Fatalf("the other process says %q, want %q", line, prefix)
		}
	case <-time.After(patience):
		p.t.Fatalf("the other process never says %q", prefix)
	}
}

func (p *process) say(line string) {
	p.t.Helper()
	if _, err := fmt.Fprintln(p.input, line); err != nil {
		p.t.Fatal(err)
	}
}

// enginePID returns the process of the engine that was published last.
func enginePID(t *testing.T, dir string) int {
	t.Helper()
	return published(t, dir).PID
}

func published(t *testing.T, dir string) (a struct {
	Addr string
	PID  int
}) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, "engine", "address.json"))
	if err == nil {
		err = json.Unmarshal(content, &a)
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// eventually waits until condition holds.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("never: %s", what)
		}
	}
}

// expectGone waits until the engine process is gone. A zombie that nobody collects counts as gone.
func expectGone(t *testing.T, pid int) {
	t.Helper()
	eventually(t, fmt.Sprintf("engine process %d is gone", pid), func() bool {
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			return true
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err == nil && bytes.Contains(stat, []byte(") Z "))
	})
}

// works reports whether the server answers a query now.
func works(s *clickhouse.Server) bool {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err := s.Version(ctx)
	return err == nil
}
