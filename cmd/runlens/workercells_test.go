package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/cmd/internal/harness"
	"github.com/runlens/runlens/ingest/move"
	"github.com/runlens/runlens/schema"
)

// A worker copies each organization into its cell, and reports what it does there.
func TestAWorkerOfCells(t *testing.T) {
	d := inThreeCells(t)
	url, source := operational(t, 0)
	for i, organization := range d.organizations() {
		execute(t, source, fmt.Sprintf(`INSERT INTO runs (organization_id, run_id, agent_id, status)
			SELECT '%s', gen_random_uuid(), gen_random_uuid(), 'RUNNING' FROM generate_series(1, %d)`, organization, i+1))
	}
	execute(t, source, `INSERT INTO runs (organization_id, run_id, agent_id, status)
		VALUES ('of nobody', gen_random_uuid(), gen_random_uuid(), 'RUNNING')`)
	rejects := filepath.Join(d.dir, "rejects.ndjson")
	address, stop := working(t, url, append(d.flags, "--rejects", rejects, "--reconcile-every", "1h")...)
	defer stop()
	var reports cellReports
	done := func() bool {
		_, out, _ := command(t, "", "worker", "status", "--json", "--admin-listen", address)
		if json.Unmarshal([]byte(out), &reports) != nil || len(reports.Cells) != 3 {
			return false
		}
		for _, r := range reports.Cells {
			if r.Reconcile == nil {
				return false
			}
		}
		return true
	}
	if !harness.Poll(t.Context(), 2*time.Minute, 200*time.Millisecond, done) {
		t.Fatalf("the worker does not catch up: %+v", reports)
	}
	if _, text, _ := command(t, "", "worker", "status", "--admin-listen", address); strings.Count(text, "cell ") != 3 {
		t.Error(text)
	}
	// An organization is moved while its records change: none is passed over, and none is copied again for ever.
	moved := d.organizations()[5]
	to := d.elsewhere(moved)
	d.die(moved, to, move.Copied)
	execute(t, source, `UPDATE runs SET status = 'COMPLETED', updated_at = now() WHERE organization_id = '`+moved+`'`)
	d.die(moved, to, move.Closed)
	execute(t, source, fmt.Sprintf(`INSERT INTO runs (organization_id, run_id, agent_id, status)
		SELECT '%s', gen_random_uuid(), gen_random_uuid(), 'COMPLETED' FROM generate_series(1, 4)`, moved))
	d.run("", "cells", "move", moved, "--to", to)
	again := append([]string{"verify", "--source", url, "--recheck-after", "0s"}, d.flags...)
	var out, stderr string
	if !harness.Poll(t.Context(), 2*time.Minute, 5*time.Second, func() bool {
		_, out, stderr = command(t, "", again...)
		return strings.Count(out, "the store holds exactly what the source holds") == 3
	}) {
		t.Fatal(out, stderr)
	}
	conn := d.cells[to].Conn()
	for what, query := range map[string]string{
		"runs that are not there": "SELECT 10 - count() FROM runs FINAL WHERE organization_id = '" + moved + "'",
		"checkpoints to go back to": "SELECT countIf(last != '') FROM (SELECT" +
			" argMax(position, (revision, saved_at)) AS last FROM checkpoints" +
			" WHERE startsWith(name, '" + schema.CheckpointArrived + "') GROUP BY name)",
	} {
		var n int64
		if err := conn.QueryRow(t.Context(), "SELECT toInt64(("+query+"))").Scan(&n); err != nil || n != 0 {
			t.Errorf("%d %s, %v", n, what, err)
		}
	}
	stop()
	code, out, stderr := command(t, "", again...)
	if code != exitRejected || strings.Count(out, "the store holds exactly what the source holds") != 3 {
		t.Errorf("exit code %d\n%s%s", code, out, stderr)
	}
	text, err := os.ReadFile(rejects)
	// The move had the workers of two cells begin again.
	n := strings.Count(string(text), "of nobody")
	if err != nil || n < 1 || n > 3 || strings.Count(string(text), "\n") != n {
		t.Errorf("one record is rejected, by one worker: %s %v", text, err)
	}
	stderr, _ = d.run("", "worker", "reset", "run", "--source", url)
	if strings.Count(stderr, "cell ") < 3 {
		t.Error(stderr)
	}
}
