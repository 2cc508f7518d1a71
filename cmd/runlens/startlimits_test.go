package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/olap/clickhouse"
	"github.com/runlens/runlens/olap/clickhouse/clickhousetest"
)

// limited runs a command with a limit of open files, on an engine of its own.
func limited(t *testing.T, files int, args ...string) *process {
	t.Helper()
	script := fmt.Sprintf(`ulimit -n %d; exec "$0" "$@"`, files)
	args = append([]string{"-c", script, os.Args[0]}, args...)
	p := spawnCommand(t, nil, "sh", append(args, "--data-dir", t.TempDir(), "--engine-lib", clickhousetest.Library())...)
	p.endsWithin(t, 2*time.Minute)
	return p
}

// An engine is not started with fewer open files than it needs; with that many, and the least memory, it takes records.
func TestLeastOfAnEngine(t *testing.T) {
	limited(t, 64, "engine").failsClearly(t, "ulimit -n")
	file := filepath.Join(t.TempDir(), "runs.ndjson")
	export(t, file, "acme", 5_000)
	p := limited(t, 256, "ingest", "--engine-memory", fmt.Sprint(clickhouse.MinEngineMemoryBytes), file)
	if p.ProcessState.ExitCode() != exitDone {
		t.Errorf("%v:\n%s", p.ProcessState, p.err.String())
	}
}

// A library that cannot say its version, here for want of open files, makes the command fail.
func TestVersionOfALibraryThatFails(t *testing.T) {
	limited(t, 16, "version").failsClearly(t, "ulimit -n")
}

// A data directory that is a link to nothing says so.
func TestDataDirectoryIsALinkToNothing(t *testing.T) {
	link := filepath.Join(t.TempDir(), "data")
	must(t, os.Symlink(filepath.Join(t.TempDir(), "gone"), link))
	code, _, stderr := command(t, "", "migrate", "status", "--data-dir", link, "--engine-lib", clickhousetest.Library())
	if code != exitFailed || !strings.Contains(stderr, "is a link to what does not exist") {
		t.Errorf("%d %s", code, stderr)
	}
}

// A variable is refused as an argument is. Some are passwords.
func TestVariableThatIsNotUTF8(t *testing.T) {
	t.Setenv("RUNLENS_CLICKHOUSE_URL", "http://runlens:secret\xff@127.0.0.1:1/none")
	code, out, stderr := command(t, "", "migrate", "status")
	if code != exitUsage || !strings.Contains(stderr, "RUNLENS_CLICKHOUSE_URL is not UTF-8") ||
		strings.Contains(out+stderr, "secret") {
		t.Errorf("%d %s%s", code, out, stderr)
	}
}
