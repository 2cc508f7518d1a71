package main

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/runlens/runlens/cmd/internal/harness"
	"github.com/runlens/runlens/olap/rollup"
	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
)

// Two servers refresh while records are ingested; servers and engine are killed at random times. Afterwards everything
// refreshed is what its sources say.
func TestRefreshSurvivesKills(t *testing.T) {
	t.Parallel() // it waits more than it works
	dir := t.TempDir()
	flags := store(t)
	serve := func() *process {
		return spawn(
			t,
			append(
				[]string{"serve", "--listen", "127.0.0.1:0", "--admin-listen", "off", "--maintenance-share", "0.9"},
				flags...)...)
	}
	servers := []*process{serve(), serve()}
	var files []string
	for i := range halved(8) {
		file := filepath.Join(dir, strconv.Itoa(i)+".ndjson")
		// more than 8,000 rows, for which refreshing does not wait for more
		export(t, file, "acme-"+strconv.Itoa(i%3), 2200+400*i)
		files = append(files, file)
		ingested := make(chan int, 1)
		go func() {
			// One whose engine is killed while it connects fails, and is run again as an operator would.
			code := 1
			for range 5 {
				if code, _, _ = command(t, "", append([]string{"ingest", file}, flags...)...); code == 0 {
					break
				}
			}
			ingested <- code
		}()
		time.Sleep(time.Duration(rand.Int64N(int64(2500 * time.Millisecond))))
		if n := rand.IntN(3); n < 2 {
			servers[n].Process.Kill()
			<-servers[n].ended
			servers[n] = serve()
		} else {
			killEngine(t, flags[1])
		}
		if code := <-ingested; code != 0 {
			t.Fatalf("ingest of file %d ended with %d", i, code)
		}
	}
	joined, err := openMigrated(context.Background(), storeFlags{DataDir: flags[1], EngineLib: flags[3]},
		slog.New(slog.DiscardHandler))
	must(t, err)
	defer joined.Close()
	pending := func() bool {
		for i := range 3 {
			for _, table := range schema.RollupTables {
				organization := schema.OrganizationID("acme-" + strconv.Itoa(i))
				watermark, err := snapshot.ReadLog(context.Background(), joined.Conn())
				if err != nil || watermark.Number == 0 {
					return true
				}
				of := snapshot.Records{Organization: organization, Source: table.Source}
				delta, err := rollup.ReadDelta(context.Background(), joined.Conn(), of, watermark.Until, nil, 1)
				if err != nil || delta == nil || delta.Len() > 0 {
					return true
				}
			}
		}
		return false
	}
	if !harness.Poll(t.Context(), 2*time.Minute, 100*time.Millisecond, func() bool { return !pending() }) {
		t.Fatal("not everything is refreshed")
	}
	if code, out, stderr := command(t, "", append([]string{"rollup", "check"}, flags...)...); code != 0 {
		t.Errorf("check ended with %d:\n%s%.2000s", code, out, stderr)
	}
	var refreshed, truth int64
	if err := joined.Conn().QueryRow(context.Background(), "SELECT (SELECT toInt64(sum(runs)) FROM rollup_runs), "+
		"(SELECT toInt64(count()) FROM runs FINAL)").Scan(&refreshed, &truth); err != nil {
		t.Fatal(err)
	}
	if refreshed != truth || truth < 3*2200 {
		t.Errorf("%d runs are refreshed, %d stored", refreshed, truth)
	}
	verified(t, flags, files...)
}
