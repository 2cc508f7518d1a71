package main

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/cmd/internal/trap"
	"github.com/runlens/runlens/olap/clickhouse/clickhousetest"
)

// Ten kills of the engine at chosen points of ingest, worker and refresh lose and double nothing. (After a purge that
// lost its engine the next one waits for two minutes: package purge has tests for it.)
func TestKillsAtChosenPoints(t *testing.T) {
	dir := t.TempDir()
	binary := filepath.Join(dir, "runlens")
	if out, err := exec.Command("go", "build", "-o", binary, "../runlens").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	c := command{
		Only: []string{"kills"}, Kills: 10, KillsOf: []string{"ingest", "worker", "refresh"},
		Dir: filepath.Join(dir, "soak"), Runlens: binary, EngineLib: clickhousetest.Library(),
		RangesFor: time.Second, HoldFor: time.Second, MixedFor: time.Second, KillEvery: time.Second, OracleFor: time.Second,
		Connections: 1, Tries: 1, MemoryBound: 1, Answers: 1, OracleRuns: 1,
	}
	var out, progress bytes.Buffer
	err := c.run(t.Context(), &out, &progress)
	if strings.Contains(out.String(), trap.ErrUnable.Error()) {
		t.Skip(trap.ErrUnable)
	}
	if err != nil {
		t.Errorf("%v\n%s\n%s", err, &out, &progress)
	}
}
