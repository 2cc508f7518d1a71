package ingest_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/ingest"
	"github.com/runlens/runlens/ingest/checkpoint"
	"github.com/runlens/runlens/ingest/source"
	"github.com/runlens/runlens/ingest/write"
	"github.com/runlens/runlens/olap/olaptest"
)

// A batch goes on over the next file, and is acknowledged where it ends. A file that may wait for input is not begun
// before what was read is on its way.
func TestManySmallFilesAreFewBatches(t *testing.T) {
	const files = 300
	conn := olaptest.OpenStore(t).Conn()
	var rejects []ingest.Reject
	options := collect(conn, &rejects)
	for n := range files {
		file := text(fmt.Sprint("f", n), agent(n, 1), "{}")
		file.Regular = true
		options.Sources = append(options.Sources, file)
	}
	options.Sources = append(options.Sources, text("waiting", agent(files, 1)))
	var acknowledged []ingest.Progress
	options.Acknowledged = func(_ context.Context, p ingest.Progress) error {
		acknowledged = append(acknowledged, p)
		return nil
	}
	summary, err := ingest.Run(context.Background(), options)
	if want := (ingest.Summary{Read: 2*files + 1, Agents: files + 1, Rejected: files}); err != nil || summary != want {
		t.Fatalf("%+v, %v, want %+v", summary, err, want)
	}
	if len(acknowledged) != 2 || acknowledged[0].Source != files-1 || acknowledged[0].Position.Lines != 2 ||
		acknowledged[1].Source != files || acknowledged[1].Position.Lines != 1 {
		t.Errorf("acknowledged %+v", acknowledged)
	}
	for n, reject := range rejects {
		if reject.Source != fmt.Sprint("f", n) || reject.Line != 2 {
			t.Fatalf("reject %d is of %s line %d", n, reject.Source, reject.Line)
		}
	}
	// A run that continues does so within the file, and goes on to the next one.
	options.From = ingest.Progress{Source: files - 2, Position: source.Position{Offset: int64(len(agent(files-2, 1))) + 1,
		Lines: 1}}
	rejects = nil
	if summary, err = ingest.Run(context.Background(), options); err != nil || summary.Read != 4 || len(rejects) != 2 ||
		rejects[0].Line != 2 {
		t.Errorf("continued: %+v, %v, %+v", summary, err, rejects)
	}
}

// A checkpoint is as long for any number of files, and one that an earlier version saved is understood.
func TestCheckpointsOfManyFiles(t *testing.T) {
	ctx := context.Background()
	conn := olaptest.OpenStore(t).Conn()
	var files []ingest.Fingerprint
	for n := range 2000 {
		files = append(files, ingest.Fingerprint{Path: fmt.Sprintf("/a/path/%d", n), Bytes: 1,
			ModifiedAt: time.Unix(1, 5).UTC(), ReadAs: "ndjson"})
	}
	log := checkpoint.NewLog(conn, write.Retry{Logger: quiet})
	backfill := ingest.NewBackfill(log, files)
	at := ingest.Progress{Source: 7, Position: source.Position{Offset: 3, Lines: 1}, Summary: ingest.Summary{Read: 10}}
	if err := backfill.Save(ctx, at); err != nil {
		t.Fatal(err)
	}
	var longest uint64
	const query = "SELECT max(length(position)) FROM checkpoints"
	if err := conn.QueryRow(ctx, query).Scan(&longest); err != nil || longest > 1000 {
		t.Errorf("a checkpoint of %d bytes, %v", longest, err)
	}
	if got, _, found, err := backfill.Interrupted(ctx); err != nil || !found || got != at {
		t.Errorf("%+v, %v, %v", got, found, err)
	}
	// As versions before this one saved it.
	earlier := map[string]any{"files": files, "progress": at}
	if err := log.Save(ctx, "ingest:"+backfill.ID(), earlier); err != nil {
		t.Fatal(err)
	}
	if got, _, found, err := backfill.Interrupted(ctx); err != nil || !found || got != at {
		t.Errorf("of an earlier version: %+v, %v, %v", got, found, err)
	}
	files[1].Bytes++
	if _, _, found, err := ingest.NewBackfill(log, files).Interrupted(ctx); err != nil || found {
		t.Errorf("a changed file continues it, %v", err)
	}
}

// A reject of a quote that takes lines names the line in which it opens.
func TestRejectNamesTheOpenQuote(t *testing.T) {
	const header = "organization_id,agent_id,name,updated_at\n"
	in := header + "acme,\"" + olaptest.ShortID(1).String() + ",A,2026-01-01T00:00:00Z\n" +
		strings.Repeat("acme,"+olaptest.ShortID(2).String()+",B,2026-01-01T00:00:00Z\n", 3)
	file := &source.File{Name: "a.csv", Format: source.CSV, Kind: "agent", Open: func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(in)), nil
	}}
	var rejects []ingest.Reject
	if _, err := ingest.Run(context.Background(), collect(nil, &rejects, file)); err != nil || len(rejects) != 1 {
		t.Fatal(rejects, err)
	}
	if want := "; the quote that opens in line 2 takes 4 lines"; !strings.HasSuffix(rejects[0].Error, want) {
		t.Errorf("%s, want %s", rejects[0].Error, want)
	}
}

// content is everything in the tables, versions collapsed, but for the time of storing.
func content(t olaptest.Failer, conn driver.Conn) string {
	t.Helper()
	var all []string
	for _, query := range []string{
		"SELECT formatRow('JSONEachRow', organization_id, agent_id, latest) AS line FROM agents FINAL ORDER BY line",
		"SELECT formatRow('JSONEachRow', organization_id, run_id, created_at, state, agent, initiator, record) AS line " +
			"FROM runs FINAL ORDER BY line",
		"SELECT formatRow('JSONEachRow', organization_id, attribution_id, run_id, agent_id, user_identifier, user_domain, " +
			"user_name, activity_type, run_initiation_type, source, occurred_at) AS line FROM attributions FINAL ORDER BY line",
	} {
		rows, err := conn.Query(context.Background(), query)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			var line string
			if err := rows.Scan(&line); err != nil {
				t.Fatal(err)
			}
			all = append(all, line)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		rows.Close()
	}
	return strings.Join(all, "")
}
