package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Files as databases write them are read with the same options by ingest and by verify.
func TestFilesOfDatabases(t *testing.T) {
	flags := store(t)
	const (
		agent  = "00000000-0000-4000-8000-00000000000a"
		header = "run_id,organization_id,agent_id,status,initiator_identifier,initiator_name,created_at,updated_at"
	)
	id := func(n string) string { return "00000000-0000-4000-8000-00000000000" + n }
	row := func(delimiter string, cells ...string) string { return strings.Join(cells, delimiter) + "\n" }
	cut := func(delimiter, text string) string { return strings.ReplaceAll(text, ",", delimiter) + "\n" }
	want := `{"record":"run","organization_id":"acme","run_id":"` + id("1") + `","agent_id":"` + agent +
		`","status":"FAILED","created_at":"2024-02-29T18:30:00.100Z","updated_at":"2024-03-01T00:00:00.123Z"}` + "\n"
	for name, c := range map[string]struct {
		content string
		args    []string
	}{
		"PostgreSQL": {cut(",", header) + row(",", id("1"), "acme", agent, "FAILED", "", "", "2024-03-01 00:00:00.1+05:30",
			"2024-03-01 00:00:00.123+00"),
			[]string{"--format", "csv", "--record", "run"}},
		"ClickHouse": {cut(";", header) + row(";", `"`+id("1")+`"`, `"acme"`, agent, `"FAILED"`, `\N`, `\N`,
			"2024-03-01T00:00:00.1+05:30", "2024-03-01T00:00:00.123Z"),
			[]string{"--format", "csv", "--record", "run", "--delimiter", ";"}},
		"tabs and NULL": {cut("\t", header) + row("\t", id("1"), "acme", agent, "FAILED", "NULL", "NULL",
			"2024-03-01 00:00:00.1+0530", "2024-03-01 00:00:00.123999 UTC"),
			[]string{"--format", "csv", "--record", "run", "--delimiter", "tab", "--null", "NULL"}},
		"more columns": {cut(",", header+",cost,host") + row(",", id("1"), "acme", agent, "FAILED", "", "",
			"2024-03-01 00:00:00.1+05:30", "2024-03-01 00:00:00.123+00", "1.50", "a,"[:1]),
			[]string{"--format", "csv", "--record", "run", "--ignore-unknown"}},
		"NDJSON with more fields": {strings.Replace(strings.Replace(want, "2024-02-29T18:30:00.100Z",
			"2024-03-01 00:00:00.1+05:30", 1), "}", `,"cost":{"sum":1.5}}`, 1),
			[]string{"--ignore-unknown"}},
	} {
		file := fileOf(t, "runs", []byte(c.content))
		code, out, stderr := command(t, "", append(append([]string{"ingest", file}, c.args...), flags...)...)
		if code != 0 || !strings.Contains(out, "runs 1") {
			t.Fatalf("%s: ended with %d: %s %s", name, code, out, stderr)
		}
		verified(t, flags, append(c.args, file)...)
		verified(t, flags, fileOf(t, "want.ndjson", []byte(want)))
		if code, _, stderr := command(t, "", append([]string{"purge", "--org", "acme", "--yes"}, flags...)...); code != 0 {
			t.Fatal(stderr)
		}
	}
}

// What would be a guess is a reject that says so, and what is not understood is named.
func TestFilesThatAreRefused(t *testing.T) {
	line := `{"record":"agent","organization_id":"acme","agent_id":"00000000-0000-4000-8000-00000000000a","name":"A",` +
		`"updated_at":"2024-03-01 00:00:00.123"}` + "\n"
	csv := "organization_id,agent_id,name,updated_at\nacme,00000000-0000-4000-8000-00000000000a,A,2024-03-01 " +
		"00:00:00.123\n"
	for name, c := range map[string]struct {
		stdin string
		args  []string
		code  int
		says  string
	}{
		"no offset": {line, nil, exitRejected, "updated_at has no offset, so that its time zone would be a guess"},
		"no offset in CSV": {csv, []string{"--format", "csv", "--record", "agent"}, exitRejected,
			"updated_at has no offset, so that its time zone would be a guess"},
		"xz":     {"\xfd7zXZ\x00\x00\x04\xe6\xd6", nil, exitFailed, "is packed with xz"},
		"UTF-16": {"\xff\xfe{\x00\"\x00", nil, exitFailed, "UTF-16"},
		"an unknown field": {strings.Replace(line, `"name"`, `"colour":1,"name"`, 1), nil, exitRejected,
			"colour is no field"},
		"two delimiters": {csv, []string{"--delimiter", ",;"}, exitUsage, "--delimiter must be one character"},
		"a quote":        {csv, []string{"--delimiter", `"`}, exitUsage, "--delimiter must be one character"},
	} {
		code, _, stderr := command(t, c.stdin, append([]string{"ingest", "--dry-run", "-"}, c.args...)...)
		if code != c.code || !strings.Contains(stderr, c.says) {
			t.Errorf("%s: ended with %d, want %d and %q: %s", name, code, c.code, c.says, stderr)
		}
	}
}

// A row of CSV that was no record is accepted when it is fixed, with the delimiter, the null and the columns of its
// file.
func TestRejectedCSVIsMended(t *testing.T) {
	folder := t.TempDir()
	rejects, again := filepath.Join(folder, "rejects.ndjson"), filepath.Join(folder, "again.ndjson")
	const id = "00000000-0000-4000-8000-00000000000a"
	header := "size;organization_id;agent_id;name;slug;updated_at\n"
	rows := "1;acme;" + id + ";A; B;\\N;2024-03-01 00:00:00+00\n" + // a cell too many
		"2;acme;" + id + ";\"C\"; D\";\\N;2024-03-01 00:00:00+00\n" // quotes within quotes
	code, out, stderr := command(t, header+rows, "ingest", "--dry-run", "--ignore-unknown", "--format", "csv",
		"--record", "agent", "--delimiter", ";", "--rejects", rejects, "-")
	if code != exitRejected || !strings.Contains(out, "rejected 2") {
		t.Fatalf("ended with %d: %s %s", code, out, stderr)
	}
	// As it is, it is rejected again, and nothing of it is lost.
	code, out, stderr = command(t, "", "ingest", "--dry-run", "--rejects", again, rejects)
	if code != exitRejected || !strings.Contains(out, "read 2, valid: agents 0") {
		t.Fatalf("again: ended with %d: %s %s", code, out, stderr)
	}
	for _, file := range []string{rejects, again} {
		content, err := os.ReadFile(file)
		must(t, err)
		fixed := strings.NewReplacer("A; B", `\"A; B\"`, `\"C\"; D\"`, `\"C\"\"; D\"`, `\\\"C\\\"; D\\\"`, `x`).
			Replace(string(content))
		code, out, stderr := command(t, "", "ingest", "--dry-run", fileOf(t, "fixed.ndjson", []byte(fixed)))
		if code != 0 || !strings.Contains(out, "read 2, valid: agents 2") {
			t.Errorf("%s: ended with %d: %s %s\n%s", file, code, out, stderr, fixed)
		}
	}
}
