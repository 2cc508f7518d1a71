package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What breaks a rule of contract 3 is rejected by push as by ingest, with the same line of the rejects file, also where
// it could not be sent as it is: JSON has no bytes that are no UTF-8, and line 6 would be longer than a body may be.
// The records around it are stored.
func TestPushRejectsWhatIngestRejects(t *testing.T) {
	flags := store(t)
	base, _, _ := started(t, flags...)
	_, key := createKey(t, flags, "--scopes", "ingest:write")
	t.Setenv("RUNLENS_API_KEY", key)
	var csv strings.Builder
	csv.WriteString("organization_id,attribution_id,run_id,agent_id,activity_type,run_initiation_type,occurred_at," +
		"user_identifier,user_name,source\n")
	const id = "00000000-0000-4000-8000-00000000000"
	row := func(attribution, person, name, channel string) {
		csv.WriteString("acme," + id + attribution + "," + id + "a," + id + "b,initiated,human,2026-01-05T10:00:00Z," +
			person + "," + name + "," + channel + "\n")
	}
	row("1", "ada@example.com", "Ada", "web")
	row("2", "ada@example.com", "Ada", "w\xffb")
	row("3", "ada@example.com", "Ad\xe9", "web")
	row("4", "ada@exampl\xfe.com", "Ada", "web")
	row("5", "ada@example.com", strings.Repeat("\x01", 3<<20), "web")
	row("6", "bob@example.com", "Bob", "web")
	path := fileOf(t, "attributions.csv", []byte(csv.String()))
	rejects := filepath.Join(t.TempDir(), "rejects")
	read := func(command string, code int, out, stderr string) string {
		t.Helper()
		content, err := os.ReadFile(rejects)
		if code != exitRejected || err != nil ||
			!strings.Contains(out, "read 6, stored: agents 0, runs 0, attributions 2, rejected 4") &&
				!strings.Contains(out, "read 6, valid: agents 0, runs 0, attributions 2, rejected 4") {
			t.Fatalf("%s ended with %d, %v: %s%.1000s", command, code, err, out, stderr)
		}
		return string(content)
	}
	arguments := []string{"--record", "attribution", "--rejects", rejects, path}
	code, out, stderr := command(t, "", append([]string{"push", "--url", base}, arguments...)...)
	pushed := read("push", code, out, stderr)
	code, out, stderr = command(t, "", append([]string{"ingest", "--dry-run"}, arguments...)...)
	ingested := read("ingest", code, out, stderr)
	if pushed != ingested {
		t.Errorf("push rejects\n%.2000s\ningest\n%.2000s", pushed, ingested)
	}
	for _, want := range []string{
		`"line":3,"field":"source","error":"is not valid UTF-8"`, `"line":4,"field":"user_name","error":"is not valid UTF-8"`,
		`"line":5,"field":"user_identifier","error":"is not valid UTF-8"`,
		`"line":6,"field":"user_name","error":"must have at most 500 characters, not 3145728"`,
	} {
		if !strings.Contains(pushed, want) {
			t.Errorf("the rejects lack %s", want)
		}
	}
}

// A record that is right but too long for a line is rejected alone.
func TestPushRejectsTooLongLinesAlone(t *testing.T) {
	flags := store(t)
	base, _, _ := started(t, flags...)
	_, key := createKey(t, flags, "--scopes", "ingest:write")
	t.Setenv("RUNLENS_API_KEY", key)
	padded := strings.Replace(runsCSV, "Ada@Example.com", `"Ada@Example.com`+strings.Repeat("\v", 3<<20)+`"`, 1)
	code, out, stderr := command(t, padded, "push", "--url", base, "--record", "run", "--format", "csv", "-")
	if code != exitRejected || !strings.Contains(out, "stored: agents 0, runs 1, attributions 0, rejected 1") ||
		!strings.Contains(stderr, "line 2: is longer than 1048576 bytes") {
		t.Errorf("ended with %d: %s%.1000s", code, out, stderr)
	}
}

// What answers may be no runlens server. Then nothing is stored.
func TestPushToSomethingElse(t *testing.T) {
	t.Setenv("RUNLENS_API_KEY", "a-key")
	for body, want := range map[string]string{
		"null": "not one of this API", "{}": "not one of this API",
		`{"lines":2,"stored":0,"rejected":0}`: "not one of this API",
		`{"lines":3,"stored":3,"rejected":0}`: "has read 3 of 2 lines",
		`{"lines":2,"stored":1,"rejected":1}`: "the server rejects 1 of 2 lines and names none",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, body)
		}))
		code, out, stderr := command(t, runsCSV, "push", "--url", server.URL, "--record", "run", "--format", "csv", "-")
		server.Close()
		if code != exitFailed || !strings.Contains(stderr, want) || !strings.Contains(out, "stored: agents 0, runs 0") {
			t.Errorf("%s: ended with %d: %s %s", body, code, out, stderr)
		}
	}
}
