package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"github.com/runlens/runlens/cmd/internal/trap"
	"github.com/runlens/runlens/olap/clickhouse/clickhousetest"
	"github.com/runlens/runlens/olap/clickhouse/clickhousetest/memory"
	"github.com/runlens/runlens/olap/olaptest"
)

// Ten kills of the engine at chosen points of ingest, worker and refresh lose and double nothing. (After a purge that
// lost its engine the next one waits for two minutes: package purge has tests for it.)
func TestKillsAtChosenPoints(t *testing.T) {
	inTurn(t)
	t.Parallel() // it waits more than it works
	c := killsCommand(t, buildRunlens(t))
	var out, progress bytes.Buffer
	err := c.run(t.Context(), &out, &progress)
	if strings.Contains(out.String(), trap.ErrUnable.Error()) {
		t.Skip(trap.ErrUnable)
	}
	if err != nil {
		t.Errorf("%v\n%s\n%s", err, &out, &progress)
	}
}

// Where there is no strace, the part is skipped, says so in one line, and misses nothing.
func TestKillsAreSkippedWithoutStrace(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	programs := t.TempDir()
	if err := os.Symlink(sleep, filepath.Join(programs, "sleep")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", programs)
	c := killsCommand(t, filepath.Join(programs, "no-binary"))
	var out, progress bytes.Buffer
	if err := c.run(t.Context(), &out, &progress); err != nil {
		t.Errorf("%v\n%s", err, &progress)
	}
	if line := "kills, skipped: " + trap.ErrUnable.Error(); strings.Count(out.String(), line) != 1 {
		t.Errorf("%s\nwant one line %q", &out, line)
	}
}

// longTests are three, of which one is tried with -short.
var longTests = sync.OnceValue(func() *olaptest.Sample { return olaptest.NewSample(3) })

func inTurn(t *testing.T) {
	t.Helper()
	if !longTests().Try() {
		t.Skip("with -short one part of three is tried, another one each time")
	}
}

func buildRunlens(t *testing.T) (binary string) {
	t.Helper()
	binary = filepath.Join(t.TempDir(), "runlens")
	if out, err := exec.Command("go", "build", "-ldflags=-w", "-o", binary, "../runlens").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return binary
}

// killsCommand proves ten kills with a binary, and keeps what it makes in a folder. All else is as by default.
func killsCommand(t *testing.T, binary string) (c command) {
	t.Helper()
	parser, err := kong.New(&c, kong.Vars{"attacks": ""})
	if err == nil {
		_, err = parser.Parse(nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	c.Only, c.Kills, c.KillsOf = []string{"kills"}, 10, []string{"ingest", "worker", "refresh"}
	c.Dir, c.Runlens, c.EngineLib = memory.TempDir(t), binary, clickhousetest.Library()
	if testing.Short() {
		c.Kills = 3
	}
	return c
}

// Kills of the server and of its engine while eight clients push lose and double nothing that was acknowledged.
func TestPushUnderKills(t *testing.T) {
	inTurn(t)
	t.Parallel() // it waits more than it works
	c := killsCommand(t, buildRunlens(t))
	c.Only, c.PushKills, c.PushFor = []string{"push"}, 6, time.Second
	var out, progress bytes.Buffer
	if err := c.run(t.Context(), &out, &progress); err != nil {
		t.Errorf("%v\n%s\n%s", err, &out, &progress)
	}
	t.Log(out.String())
}
