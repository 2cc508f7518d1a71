package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// ClickHouse starts without parts that it finds damaged, as a loss of power may leave them. The server says so.
func TestDamagedPartsAreTold(t *testing.T) {
	flags := store(t)
	ingestTwoDays(t, flags)
	conn := joined(t, flags)
	var path string
	const part = "SELECT any(path) FROM system.parts WHERE database = currentDatabase() AND table = 'runs' AND active"
	must(t, conn.QueryRow(t.Context(), part).Scan(&path))
	serve := func() (p *process, metrics string) {
		ready, admin := filepath.Join(t.TempDir(), "ready"), freeAddress(t)
		p = spawn(t, append([]string{"serve", "--listen", "127.0.0.1:0", "--ready-file", ready, "--admin-listen", admin,
			"--maintenance-share", "0"}, flags...)...)
		waitForFile(t, p, ready)
		_, metrics = get(t, "http://"+admin+"/metrics", "")
		p.Process.Kill()
		<-p.ended
		return p, metrics
	}
	const metric, words = `runlens_damaged_parts{table="runs"} 1`, "ClickHouse found parts of a table damaged"
	p, metrics := serve()
	if strings.Contains(metrics, "runlens_damaged_parts{") || strings.Contains(p.err.String(), words) {
		t.Errorf("an undamaged store is reported as damaged: %s", p.err.String())
	}
	for _, metric := range []string{"runlens_rollup_age_seconds", "runlens_rollup_damages"} {
		if !strings.Contains(metrics, "\n"+metric+" ") {
			t.Errorf("a server that does no maintenance does not tell %s", metric)
		}
	}
	must(t, os.Truncate(filepath.Join(path, "columns.txt"), 0))
	killEngine(t, flags[1])
	if p, metrics = serve(); !strings.Contains(metrics, metric) || !strings.Contains(p.err.String(), words) {
		t.Errorf("the log and the metrics do not report a damaged part: %s", p.err.String())
	}
}
