package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/parquet-go/parquet-go"
)

// copyMemory is the bound that ingest/README.md states, in KiB.
const copyMemory = 256 << 10

// peaked runs a command to its end and fails if it held more than it may.
func peaked(t *testing.T, wantCode int, args ...string) (out string) {
	t.Helper()
	p := spawn(t, args...)
	kib := 0
	for running := true; running; {
		select {
		case <-p.ended:
			running = false
		case <-time.After(5 * time.Millisecond):
			kib = max(kib, peakOf(p.Process.Pid))
		}
	}
	if code := p.ProcessState.ExitCode(); code != wantCode {
		t.Fatalf("%v ended with %d: %.2000s%.2000s", args[:1], code, p.out.String(), p.err.String())
	}
	t.Logf("%s: %d MiB", args[0], kib>>10)
	if kib > copyMemory || kib == 0 {
		t.Errorf("%s held %d MiB", args[0], kib>>10)
	}
	return p.out.String()
}

// copiedWithin fails if ingest or verify of a file hold more than they may.
func copiedWithin(t *testing.T, flags []string, args ...string) {
	t.Helper()
	for _, command := range []string{"ingest", "verify"} {
		peaked(t, exitDone, append(append([]string{command}, args...), flags...)...)
	}
}

// Names and identifiers of the greatest length, in letters of four bytes, all of them different.
func TestCopyMemoryOfLongTexts(t *testing.T) {
	const runs = 40_000
	file := filepath.Join(t.TempDir(), "runs.ndjson")
	out, err := os.Create(file)
	must(t, err)
	name, identifier := strings.Repeat("𝕏", 492), strings.Repeat("𝕏", 312)
	for n := range runs {
		fmt.Fprintf(out, `{"record":"run","organization_id":"acme","run_id":"0b7e4d2c-9f3a-4c61-8a55-%012d",`+
			`"agent_id":"0b7e4d2c-9f3a-4c61-8a55-2f1d6c9e7b10","status":"COMPLETED","initiator_identifier":"%s%08d",`+
			`"initiator_name":"%s%08d","created_at":"2026-01-01T09:30:00Z","updated_at":"2026-06-01T09:31:00Z"}`+"\n",
			n, identifier, n, name, n)
	}
	must(t, out.Close())
	copiedWithin(t, store(t), file)
}

// A row group of one page a column, of 20 MB and more each, as DuckDB writes it.
func TestCopyMemoryOfLargeParquetPages(t *testing.T) {
	type run struct {
		Organization string    `parquet:"organization_id,dict"`
		ID           string    `parquet:"run_id"`
		Agent        string    `parquet:"agent_id"`
		Parent       string    `parquet:"parent_run_id"`
		Status       string    `parquet:"status,dict"`
		Identifier   string    `parquet:"initiator_identifier"`
		Name         string    `parquet:"initiator_name"`
		Created      time.Time `parquet:"created_at,timestamp"`
		Updated      string    `parquet:"updated_at"`
	}
	const rows = 200_000
	var content bytes.Buffer
	w := parquet.NewGenericWriter[run](&content, parquet.Compression(&parquet.Snappy), parquet.PageBufferSize(100<<20),
		parquet.MaxRowsPerRowGroup(rows))
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	name := strings.Repeat("A Name ", 40)
	batch := make([]run, 1000)
	for n := range rows {
		batch[n%len(batch)] = run{"acme", uuid.NewString(), uuid.NewString(), uuid.NewString(), "COMPLETED",
			fmt.Sprintf("somebody-%06d.%s@example.com", n, name[:100]), fmt.Sprint(name, n),
			began.Add(time.Duration(n) * time.Second), "2026-06-01T00:00:00.000000000Z"}
		if (n+1)%len(batch) == 0 {
			if _, err := w.Write(batch); err != nil {
				t.Fatal(err)
			}
		}
	}
	must(t, w.Close())
	copiedWithin(t, store(t), "--record", "run", fileOf(t, "runs.parquet", content.Bytes()))
}

// More records than are held at a time, and all of them differ.
func TestVerifyMemory(t *testing.T) {
	const agents = 300_000
	flags := store(t)
	file := filepath.Join(t.TempDir(), "agents.ndjson")
	out, err := os.Create(file)
	must(t, err)
	for n := range agents {
		fmt.Fprintf(out, `{"record":"agent","organization_id":"acme","agent_id":"0b7e4d2c-9f3a-4c61-8a55-%012d",`+
			`"name":"A","updated_at":"2026-06-01T09:31:00Z"}`+"\n", n)
	}
	must(t, out.Close())
	said := peaked(t, exitFailed, append([]string{"verify", "--json", file}, flags...)...)
	if !strings.Contains(said, `"missing":{"count":300000,"ids":["0b7e4d2c-9f3a-4c61-8a55-`) {
		t.Errorf("%.2000s", said)
	}
}

// A file that cannot be read is found before anything of the others is stored.
func TestUnreadableFilesAreFoundFirst(t *testing.T) {
	flags := store(t)
	good := fileOf(t, "a.ndjson", []byte(agentsNDJSON))
	gz, _ := packed(t, agentsNDJSON)
	for name, bad := range map[string]string{
		"UTF-16":  fileOf(t, "b.ndjson", []byte("\xff\xfe{\x00")),
		"Parquet": fileOf(t, "b.parquet", []byte("PAR1")),
		"gzip":    fileOf(t, "b.ndjson.gz", gz[:5]),
		"CSV":     fileOf(t, "b.csv", []byte("colour\n")),
	} {
		code, out, stderr := command(t, "", append([]string{"ingest", "--record", "run", good, bad}, flags...)...)
		if code != exitFailed || !strings.Contains(stderr, "read "+bad) {
			t.Errorf("%s: ended with %d: %s%s", name, code, out, stderr)
		}
	}
	code, out, _ := command(t, "", append([]string{"verify", good}, flags...)...)
	if code != exitFailed || !strings.Contains(out, "acme agent : 1 in the source, 0 in the store") {
		t.Errorf("something is stored; verify ended with %d: %s", code, out)
	}
}
