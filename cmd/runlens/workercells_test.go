package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A worker copies each organization into its cell, and reports what it does there.
func TestAWorkerOfCells(t *testing.T) {
	d := inThreeCells(t)
	url, conn := operational(t, 0)
	for i, organization := range d.organizations() {
		execute(t, conn, fmt.Sprintf(`INSERT INTO runs (organization_id, run_id, agent_id, status)
			SELECT '%s', gen_random_uuid(), gen_random_uuid(), 'RUNNING' FROM generate_series(1, %d)`, organization, i+1))
	}
	execute(t, conn, `INSERT INTO runs (organization_id, run_id, agent_id, status)
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
	for deadline := time.Now().Add(2 * time.Minute); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the worker does not catch up: %+v", reports)
		}
	}
	if _, text, _ := command(t, "", "worker", "status", "--admin-listen", address); strings.Count(text, "cell ") != 3 {
		t.Error(text)
	}
	stop()
	again := append([]string{"verify", "--source", url, "--recheck-after", "0s"}, d.flags...)
	code, out, stderr := command(t, "", again...)
	if code != exitRejected || strings.Count(out, "the store holds exactly what the source holds") != 3 {
		t.Errorf("exit code %d\n%s%s", code, out, stderr)
	}
	text, err := os.ReadFile(rejects)
	if err != nil || strings.Count(string(text), "\n") != 1 {
		t.Errorf("one record is rejected, by one worker: %s %v", text, err)
	}
	stderr, _ = d.run("", "worker", "reset", "run", "--source", url)
	if strings.Count(stderr, "cell ") < 3 {
		t.Error(stderr)
	}
}
