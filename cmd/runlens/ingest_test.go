package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

const (
	runsCSV = "run_id,organization_id,agent_id,status,initiator_identifier,created_at,updated_at\n" +
		"00000000-0000-4000-8000-000000000001,acme,00000000-0000-4000-8000-00000000000a,FAILED,Ada@Example.com," +
		"2026-01-05T10:00:00Z,2026-01-05T10:00:00Z\n" +
		"00000000-0000-4000-8000-000000000002,acme,00000000-0000-4000-8000-00000000000a,COMPLETED,," +
		"2026-01-05T11:00:00+01:00,2026-01-05T10:00:00Z\n"
	agentsNDJSON = `{"record":"agent","organization_id":"acme","agent_id":"00000000-0000-4000-8000-00000000000a",` +
		`"name":"A","slug":"a","updated_at":"2026-01-05T10:00:00Z"}` + "\n"
)

func fileOf(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	must(t, os.WriteFile(path, content, 0o600))
	return path
}

func packed(t *testing.T, content string) (gz, zst []byte) {
	t.Helper()
	var g bytes.Buffer
	w := gzip.NewWriter(&g)
	w.Write([]byte(content))
	w.Close()
	encoder, err := zstd.NewWriter(nil)
	must(t, err)
	return g.Bytes(), encoder.EncodeAll([]byte(content), nil)
}

// Files of every text format, packed or not, by name, pattern and standard input; the summary for scripts; and the
// store has what they have.
func TestIngestFormats(t *testing.T) {
	flags := store(t)
	gz, zst := packed(t, agentsNDJSON)
	csv := fileOf(t, "runs-1.csv", []byte(runsCSV))
	other := strings.ReplaceAll(runsCSV, "acme", "globex")
	must(t, os.WriteFile(filepath.Join(filepath.Dir(csv), "runs-2.csv"), []byte(other), 0o600))
	pattern := filepath.Join(filepath.Dir(csv), "runs-*.csv")
	for _, c := range []struct {
		stdin string
		args  []string
		want  ingestSummary
	}{
		{"", []string{"--record", "run", pattern}, ingestSummary{Read: 4, Stored: stored{Runs: 4}}},
		{runsCSV, []string{"--record", "run", "--format", "csv", "-"}, ingestSummary{Read: 2, Stored: stored{Runs: 2}}},
		{"", []string{fileOf(t, "a.ndjson.gz", gz), fileOf(t, "a.jsonl.zst", zst)},
			ingestSummary{Read: 2, Stored: stored{Agents: 2}}},
		{string(gz), []string{"-"}, ingestSummary{Read: 1, Stored: stored{Agents: 1}}},
	} {
		code, out, stderr := command(t, c.stdin, append(append([]string{"ingest", "--json"}, c.args...), flags...)...)
		var got ingestSummary
		if err := json.Unmarshal([]byte(out), &got); code != 0 || err != nil {
			t.Fatalf("%v ended with %d: %s %s", c.args, code, out, stderr)
		}
		got.Seconds, got.PerSecond = 0, 0
		if c.want.Complete = true; got != c.want {
			t.Errorf("%v: %+v, want %+v", c.args, got, c.want)
		}
	}
	verified(t, flags, "--record", "run", pattern, fileOf(t, "a.ndjson", []byte(agentsNDJSON)))
	// A part of what the store has is a difference, unless --subset says that it is a part.
	verified(t, flags, "--subset", "--record", "run", csv)
	if code, out, _ := command(t, "", append([]string{"verify", "--record", "run", csv},
		flags...)...); code != exitFailed ||
		!strings.Contains(out, "globex run 2026-01-05: 0 in the source, 2 in the store\n  only in the store: 2 "+
			"(00000000-0000-4000-8000-000000000001") {
		t.Errorf("verify of a part ended with %d:\n%s", code, out)
	}
	// A source whose records all break a rule is no proof.
	broken := fileOf(t, "broken.ndjson", []byte(`{"record":"agent"}`+"\n"))
	code, _, stderr := command(t, "", append([]string{"verify", "--subset", "--json", broken}, flags...)...)
	if code != exitFailed || !strings.Contains(stderr, "nothing was compared: the source has no record") {
		t.Errorf("verify of broken records ended with %d: %s", code, stderr)
	}
}

func TestIngestUsage(t *testing.T) {
	csv := fileOf(t, "runs.csv", []byte(runsCSV))
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"no kind":        {[]string{csv}, "--record"},
		"no such file":   {[]string{csv + "x"}, "there is no file"},
		"empty pattern":  {[]string{filepath.Dir(csv) + "/*.ndjson"}, "there is no file"},
		"a folder":       {[]string{filepath.Dir(csv)}, "folder"},
		"unknown kind":   {[]string{"--record", "person", csv}, "--record"},
		"unknown format": {[]string{"--format", "xml", csv}, "--format"},
	} {
		code, _, stderr := command(t, "", append([]string{"ingest", "--dry-run"}, c.args...)...)
		if code != exitUsage || !strings.Contains(stderr, c.says) {
			t.Errorf("%s ended with %d, want 2 and %q:\n%s", name, code, c.says, stderr)
		}
	}
	// A header that cannot be right ends the run before anything is stored.
	code, _, stderr := command(t, "run_id,colour\n", "ingest", "--dry-run", "--format", "csv", "--record", "run", "-")
	if code != exitFailed || !strings.Contains(stderr, "colour") {
		t.Errorf("an unknown column ended with %d:\n%s", code, stderr)
	}
}

// Rejects carry place, field, reason and the record, and are accepted when they are fixed.
func TestRejectsAreMended(t *testing.T) {
	flags := store(t)
	rejects := filepath.Join(t.TempDir(), "rejects.ndjson")
	csv := strings.Replace(runsCSV, "COMPLETED", "ENDED", 1)
	code, out, _ := command(
		t,
		csv,
		append([]string{"ingest", "--rejects", rejects, "--record", "run", "--format", "csv", "-"}, flags...)...)
	if code != exitRejected || !strings.Contains(out, "rejected 1") {
		t.Fatalf("ended with %d: %s", code, out)
	}
	content, err := os.ReadFile(rejects)
	must(t, err)
	var reject struct {
		Source, Field, Error string
		Line                 int
		Record               map[string]string
	}
	if err := json.Unmarshal(content, &reject); err != nil || reject.Source != "-" || reject.Line != 3 ||
		reject.Field != "status" ||
		reject.Error == "" ||
		reject.Record["status"] != "ENDED" ||
		reject.Record["record"] != "run" {
		t.Fatalf("%s, %v", content, err)
	}
	fixed := fileOf(t, "fixed.ndjson", bytes.Replace(content, []byte("ENDED"), []byte("COMPLETED"), 1))
	if code, out, stderr := command(t, "", append([]string{"ingest", fixed}, flags...)...); code != 0 {
		t.Fatalf("the fixed rejects ended with %d: %s %s", code, out, stderr)
	}
	verified(t, flags, "--record", "run", fileOf(t, "runs.csv", []byte(runsCSV)))
}

// A purge says what it would do, does it only with --yes, and is complete.
func TestPurgeCommand(t *testing.T) {
	flags := store(t)
	if code, _, stderr := command(t, runsCSV, append([]string{"ingest", "--record", "run", "--format", "csv", "-"},
		flags...)...); code != 0 {
		t.Fatal(stderr)
	}
	purge := func(args ...string) (int, string) {
		code, out, _ := command(t, "", append(append([]string{"purge", "--org", "acme"}, args...), flags...)...)
		return code, out
	}
	if code, _ := purge(); code != exitUsage {
		t.Errorf("neither --dry-run nor --yes ended with %d", code)
	}
	if code, out := purge("--person", "ADA@example.com", "--dry-run"); code != 0 ||
		!strings.Contains(out, "runs: 1 rows would be made anonymous") ||
		strings.Count(out, "conflicting_records: ") != 1 {
		t.Errorf("%d %s", code, out)
	}
	if code, out := purge("--dry-run"); code != 0 || !strings.Contains(out, "runs: 2 rows would be deleted") {
		t.Errorf("%d %s", code, out)
	}
	if code, out := purge("--yes"); code != 0 || !strings.Contains(out, "runs: 2 rows deleted") {
		t.Errorf("%d %s", code, out)
	}
	if code, out := purge("--yes", "--json"); code != 0 ||
		!strings.Contains(out, `{"table":"runs","what":"deleted","rows":0}`) {
		t.Errorf("%d %s", code, out)
	}
}

// Runs with several created_at and attribution records with several contents are named and are no difference.
func TestVerifyNamesConflicts(t *testing.T) {
	flags := store(t)
	first := strings.SplitAfter(runsCSV, "\n")[1]
	moved := fileOf(t, "runs.csv", []byte(runsCSV+strings.ReplaceAll(first, "2026-01-05T", "2026-03-05T")))
	if code, _, stderr := command(t, "", append([]string{"ingest", "--record", "run", moved},
		flags...)...); code != exitDone {
		t.Fatal(stderr)
	}
	code, out, stderr := command(t, "", append([]string{"verify", "--record", "run", moved}, flags...)...)
	if code != exitDone ||
		!strings.Contains(
			out,
			"acme run: 1 sent with several created_at, of which the newest version's counts "+
				"(00000000-0000-4000-8000-000000000001)",
		) {
		t.Errorf("verify ended with %d:\n%s%s", code, out, stderr)
	}
}

// What was ingested counts once when the command has ended, and what was pushed when that is answered, also where its
// source changed what should never change (contract 4.20): a run counts under its newest version's created_at, an
// attribution record as it came first.
func TestIngestedRecordsCountOnce(t *testing.T) {
	t.Parallel()
	for way, take := range map[string]func(t *testing.T, flags []string, base, lines string) (says string, ok bool){
		"ingested": func(t *testing.T, flags []string, _, lines string) (string, bool) {
			code, out, stderr := command(t, lines, append([]string{"ingest", "-"}, flags...)...)
			return out + stderr, code == 0
		},
		"pushed": func(t *testing.T, flags []string, base, lines string) (string, bool) {
			_, key := createKey(t, flags, "--scopes", "ingest:write")
			code, body := pushTo(t, base, key, lines)
			return body, code == 200
		},
	} {
		t.Run(way, func(t *testing.T) { testCountOnce(t, take) })
	}
}

func testCountOnce(t *testing.T, take func(t *testing.T, flags []string, base, lines string) (says string, ok bool)) {
	t.Helper()
	flags := store(t)
	base, _, _ := started(t, flags...)
	_, key := createKey(t, flags)
	const run = `{"record":"run","organization_id":"acme","run_id":"0b7e4d2c-9f3a-4c61-8a55-2f1d6c9e7b11",` +
		`"agent_id":"0b7e4d2c-9f3a-4c61-8a55-2f1d6c9e7b10","status":"COMPLETED","created_at":"2026-01-%sT09:30:00Z",` +
		`"updated_at":"2026-01-31T09:3%d:00Z"}` + "\n"
	const attribution = `{"record":"attribution","organization_id":"acme","attribution_id":` +
		`"0b7e4d2c-9f3a-4c61-8a55-2f1d6c9e7b12","run_id":"0b7e4d2c-9f3a-4c61-8a55-2f1d6c9e7b11",` +
		`"agent_id":"0b7e4d2c-9f3a-4c61-8a55-2f1d6c9e7b10","user_identifier":"%s@example.com",` +
		`"activity_type":"interacted","run_initiation_type":"human","source":"web","occurred_at":"2026-01-02T09:30:00Z"}` +
		"\n"
	for n, c := range []struct{ lines, runs, interactions string }{
		{fmt.Sprintf(run, "02", 1) + fmt.Sprintf(attribution, "ada"), `[["2026-01-02",1]]`, `[["ada@example.com",null,1]]`},
		{fmt.Sprintf(run, "05", 2), `[["2026-01-05",1]]`, `[["ada@example.com",null,1]]`},
		{fmt.Sprintf(run, "04", 0) + fmt.Sprintf(attribution, "bob"), `[["2026-01-05",1]]`, `[["ada@example.com",null,1]]`},
	} {
		if says, ok := take(t, flags, base, c.lines); !ok {
			t.Fatal(says)
		}
		for want, question := range map[string]string{
			c.runs:         `"model":"agent_runs","metrics":["run_count"],"dimensions":["day"]`,
			c.interactions: `"model":"agent_user_activity","metrics":["interaction_count"],"dimensions":["user_identifier"]`,
		} {
			code, body := post(t, base, key, "{"+question+`,"range":{"start":"2026-01-01","end":"2026-01-31","timezone":"UTC"}}`)
			if code != 200 || !strings.Contains(body, `"rows":`+want) {
				t.Errorf("after %d: %d %s, want %s", n+1, code, body, want)
			}
		}
	}
}
