package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/runlens/runlens/olap/olaptest/logtest"
)

// Contract 4.22: an output that is one of the inputs is refused before anything is opened, whatever it is called.
func TestOutputIsInput(t *testing.T) {
	folder := t.TempDir()
	at := func(name string) string { return filepath.Join(folder, name) }
	contents := map[string]string{
		"a.ndjson":    agentsNDJSON,
		"b.ndjson":    agentsNDJSON,
		"key.pem":     "the key",
		"key.yaml":    "another key",
		"mapping.sql": "the mapping",

		"cells.yaml": "cells: [{name: a, url: 'http://u@x/d', password_file: key.pem}, {name: b, data_dir: data}]",

		"data/admin.token":            "the token",
		"data/engine/password":        "the engine's password",
		"runlens/profiles.yaml":       "the keys",
		"runlens/queries/weekly.yaml": "the question",
	}
	t.Setenv("XDG_CONFIG_HOME", folder)
	for _, below := range []string{"runlens/queries", "data/engine"} {
		must(t, os.MkdirAll(at(below), 0o700))
	}
	for name, content := range contents {
		must(t, os.WriteFile(at(name), []byte(content), 0o600))
	}
	must(t, os.Mkdir(at("sub"), 0o700))
	for link, make := range map[string]func(string, string) error{"soft": os.Symlink, "hard": os.Link} {
		must(t, make(at("a.ndjson"), at(link)))
	}
	for link, target := range map[string]string{"sub/up": folder, "linked.yaml": at("runlens/profiles.yaml")} {
		must(t, os.Symlink(target, at(link)))
	}
	t.Chdir(folder)
	postgres := []string{"worker", "--source", "postgres://nobody@127.0.0.1:1/none"}
	for name, args := range map[string][]string{
		"the same":             {"ingest", "--dry-run", "--rejects", at("a.ndjson"), at("a.ndjson")},
		"relative":             {"ingest", "--dry-run", "--rejects", "a.ndjson", at("a.ndjson")},
		"..":                   {"ingest", "--dry-run", "--rejects", "sub/../a.ndjson", "a.ndjson"},
		"slashes":              {"ingest", "--dry-run", "--rejects", ".//a.ndjson", "a.ndjson"},
		"a symbolic link":      {"ingest", "--dry-run", "--rejects", "soft", "a.ndjson"},
		"the input a link":     {"ingest", "--dry-run", "--rejects", "a.ndjson", "soft"},
		"a hard link":          {"ingest", "--dry-run", "--rejects", "hard", "a.ndjson"},
		"through a folder":     {"ingest", "--dry-run", "--rejects", "sub/up/a.ndjson", "a.ndjson"},
		"a pattern":            {"ingest", "--dry-run", "--rejects", "b.ndjson", at("*.ndjson")},
		"the second file":      {"ingest", "--dry-run", "--rejects", "b.ndjson", "a.ndjson", "b.ndjson"},
		"without a dry run":    {"ingest", "--engine-lib", "/nowhere", "--rejects", "b.ndjson", "b.ndjson"},
		"the worker's SELECTs": append(slices.Clone(postgres), "--mapping", "mapping.sql", "--rejects", "sub/../mapping.sql"),
		"the TLS key": {"serve", "--tls-cert", "a.ndjson", "--tls-key", "key.pem", "--ready-file", "./key.pem",
			"--listen", "127.0.0.1:0", "--admin-listen", "off"},
		"a saved key": {"query", "--metrics", "run_count", "--key-file", "key.yaml", "--save", "./key.yaml"},
		"a saved alert": {"query", "@weekly", "--fail-if", "run_count>1", "--on-change", "key.yaml", "--save",
			"sub/up/key.yaml"},
		"profiles by a link": {"query", "--metrics", "run_count", "--save", "./linked.yaml"},
		"the password": {"ingest", "--dry-run",
			"--clickhouse-password-file", "key.pem", "--rejects", "key.pem", "a.ndjson"},
		"the cells":      {"ingest", "--dry-run", "--cells", "b.ndjson", "--rejects", "b.ndjson", "a.ndjson"},
		"the API key":    {"push", "--key-file", "key.pem", "--rejects", "key.pem", "a.ndjson"},
		"a secret":       {"serve", "--cursor-secret-file", "key.pem", "--ready-file", "key.pem"},
		"a token":        {"serve", "--admin-token-file", "key.pem", "--ready-file", "key.pem"},
		"kept keys":      {"push", "--rejects", "runlens/profiles.yaml", "a.ndjson"},
		"a question":     {"query", "@weekly", "-o", "runlens/queries/weekly.yaml", "--output", "csv"},
		"what has fired": {"query", "--body", "b.ndjson", "--fail-if", "run_count>1", "--on-change", "b.ndjson"},
		"two outputs": {"query", "--metrics", "run_count",
			"--fail-if", "run_count>1", "--on-change", "b.ndjson", "-o", "b.ndjson"},
		"a dashboard":       {"console", "--dashboard", "b.ndjson", "--export", "b.ndjson"},
		"a cell's password": {"ingest", "--dry-run", "--cells", "cells.yaml", "--rejects", "key.pem", "a.ndjson"},
		"a cell's engine": {"ingest", "--dry-run", "--cells", "cells.yaml", "--rejects", "data/engine/password",
			"a.ndjson"},
		"the engine's password": {"ingest", "--dry-run", "--data-dir", "data", "--rejects",
			"data/engine/password", "a.ndjson"},
		"the admin's token": {"serve", "--data-dir", "data", "--ready-file", "data/admin.token"},
		"the first files":   {"init", "--files", "b.ndjson", "--rejects", "b.ndjson"},
		"the first SELECTs": {"init", "--source", "postgres://nobody@127.0.0.1:1/none", "--rejects", "mapping.sql"},
		"two new outputs": {"query", "--metrics", "run_count", "--output", "csv",
			"--fail-if", "run_count>1", "--on-change", "new", "-o", "sub/up/new"},
	} {
		code, _, stderr := command(t, "", args...)
		if code != exitUsage || !strings.Contains(stderr, "is also read") {
			t.Errorf("%s: ended with %d: %s", name, code, stderr)
		}
	}
	// Standard input too.
	in, err := os.Open(at("a.ndjson"))
	must(t, err)
	defer in.Close()
	var stdout, stderr logtest.Buffer
	code := run(context.Background(), []string{"ingest", "--dry-run", "--rejects", "hard", "-"},
		streams{in, &stdout, &stderr})
	if code != exitUsage || !strings.Contains(stderr.String(), "is also read") {
		t.Errorf("standard input: ended with %d: %s", code, stderr.String())
	}
	for name, want := range contents {
		if got, err := os.ReadFile(at(name)); err != nil || string(got) != want {
			t.Errorf("%s now holds %q, %v", name, got, err)
		}
	}
	if code, _, stderr := command(t, "", "ingest", "--dry-run", "--rejects", "new", "a.ndjson", "soft"); code != 0 {
		t.Errorf("another file: ended with %d: %s", code, stderr)
	}
	// Cells may come through a pipe, which can be read once.
	must(t, syscall.Mkfifo("pipe", 0o600))
	taken := make(chan error, 1)
	go func() { taken <- os.WriteFile("pipe", []byte(contents["cells.yaml"]), 0) }()
	code, _, failure := command(t, "", "ingest", "--dry-run", "--cells", "pipe", "--rejects", "new", "a.ndjson")
	select {
	case err := <-taken:
		t.Errorf("a pipe was read before its time, %v: ended with %d: %s", err, code, failure)
	default:
		if _, err := os.ReadFile("pipe"); err != nil || code != exitDone {
			t.Errorf("cells from a pipe: ended with %d: %s; %v", code, failure, err)
		}
	}
	if code, _, stderr := command(t, "{}", "ingest", "--dry-run", "--rejects", "/dev/null", "-"); code != exitRejected {
		t.Errorf("a device: ended with %d: %s", code, stderr)
	}
}

// A server refuses to tell its address to a pipe, which it would wait for. Nor does it take the pipe away.
func TestReadyFileIsAFile(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	must(t, syscall.Mkfifo(pipe, 0o600))
	code, _, stderr := command(t, "", "serve", "--ready-file", pipe, "--listen", "127.0.0.1:0", "--admin-listen", "off",
		"--engine-lib", "/nowhere")
	if code != exitUsage || !strings.Contains(stderr, "name a file") {
		t.Errorf("ended with %d: %s", code, stderr)
	}
	if info, err := os.Stat(pipe); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		t.Errorf("the pipe is not what it was: %v", err)
	}
}

// A question is saved as a file of questions: it takes the place of no key, pipe or device.
func TestWhatIsSavedIsAQuestion(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", folder)
	t.Chdir(folder)
	must(t, os.WriteFile("key", []byte("the key"), 0o600))
	must(t, syscall.Mkfifo("pipe.yaml", 0o600))
	for path, says := range map[string]string{
		"./key":                   "./key does not end in .yaml",
		"/dev/null":               "/dev/null does not end in .yaml",
		"pipe.yaml":               "pipe.yaml is no regular file",
		"./runlens/profiles.yaml": "is for the keys of profiles", // which are not there yet
	} {
		code, _, stderr := command(t, "", "query", "--metrics", "run_count", "--save", path)
		if code != exitUsage || !strings.Contains(stderr, says) {
			t.Errorf("%s: ended with %d: %s", path, code, stderr)
		}
	}
	info, err := os.Stat("pipe.yaml")
	if content, _ := os.ReadFile("key"); err != nil || info.Mode()&os.ModeNamedPipe == 0 || string(content) != "the key" {
		t.Errorf("the key is %q, the pipe %v, %v", content, info, err)
	}
}

// A dashboard is not exported over a question that it shows (contract 4.22).
func TestExportIsNoQuestion(t *testing.T) {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"models":[{"name":"agent_runs","metrics":[{"name":"run_count","type":"count"}]}]}`)
	}))
	defer api.Close()
	t.Chdir(t.TempDir())
	for name, value := range map[string]string{"XDG_CONFIG_HOME": t.TempDir(), "RUNLENS_URL": api.URL,
		"RUNLENS_API_KEY": "key"} {
		t.Setenv(name, value)
	}
	const question = "metrics: [run_count]\n"
	for name, content := range map[string]string{"runs.yaml": question, "board.yaml": "panels: [{saved: ./runs.yaml}]\n"} {
		must(t, os.WriteFile(name, []byte(content), 0o600))
	}
	code, _, stderr := command(t, "", "console", "--dashboard", "board.yaml", "--export", "./runs.yaml")
	if code != exitUsage || !strings.Contains(stderr, "--export ./runs.yaml is also read, as runs.yaml") {
		t.Errorf("ended with %d: %s", code, stderr)
	}
	if content, err := os.ReadFile("runs.yaml"); err != nil || string(content) != question {
		t.Errorf("the question is %q, %v", content, err)
	}
}

// A link to the file of --rejects stays one.
func TestRejectsThroughALink(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rejects")
	must(t, os.WriteFile(path, []byte("of the last run\n"), 0o600))
	must(t, os.Symlink(path, path+"-link"))
	r, err := newRejects(path+"-link", "", false, os.Stderr)
	if err == nil {
		err = r.Close()
	}
	must(t, err)
	if content, err := os.ReadFile(path); len(content) > 0 || err != nil {
		t.Errorf("behind the link is %q, %v", content, err)
	}
	if target, err := os.Readlink(path + "-link"); target != path {
		t.Errorf("the link leads to %q, %v", target, err)
	}
}

// A file that breaks off ends the run with an error: the rejects before are in place, and stay when it is run again.
func TestRejectsOfAFailedRun(t *testing.T) {
	flags := store(t)
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	w.Write([]byte("{}\n" + agentsNDJSON + strings.Repeat(agentsNDJSON, 1000)))
	w.Flush()
	file := fileOf(t, "a.ndjson.gz", packed.Bytes()) // without its end
	path := filepath.Join(t.TempDir(), "rejects")
	for range 2 {
		code, out, stderr := command(t, "", append([]string{"ingest", "--rejects", path, file}, flags...)...)
		if code != exitFailed || !strings.Contains(out, "rejected 1") {
			t.Fatalf("ended with %d: %s %s", code, out, stderr)
		}
		if content, err := os.ReadFile(path); strings.Count(string(content), "\n") != 1 || err != nil {
			t.Fatalf("rejects %q, %v", content, err)
		}
	}
	if left, err := filepath.Glob(path + ".*"); len(left) > 0 || err != nil {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
