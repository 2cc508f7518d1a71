package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runlens/runlens/ingest"
)

// Contract 4.22: an output that is one of the inputs is refused before anything is opened, whatever it is called.
func TestOutputIsInput(t *testing.T) {
	folder := t.TempDir()
	at := func(name string) string { return filepath.Join(folder, name) }
	contents := map[string]string{
		"a.ndjson":    agentsNDJSON,
		"b.ndjson":    agentsNDJSON,
		"key.pem":     "the key",
		"mapping.sql": "the mapping",
	}
	for name, content := range contents {
		if err := os.WriteFile(at(name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(at("sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	for link, make := range map[string]func(string, string) error{"soft": os.Symlink, "hard": os.Link} {
		if err := make(at("a.ndjson"), at(link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(folder, at("sub/up")); err != nil {
		t.Fatal(err)
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
	} {
		code, _, stderr := command(t, "", args...)
		if code != exitUsage || !strings.Contains(stderr, "is also read") {
			t.Errorf("%s: ended with %d: %s", name, code, stderr)
		}
	}
	// Standard input too.
	in, err := os.Open(at("a.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var stdout, stderr bytes.Buffer
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
	if code, _, stderr := command(t, "{}", "ingest", "--dry-run", "--rejects", "/dev/null", "-"); code != exitRejected {
		t.Errorf("a device: ended with %d: %s", code, stderr)
	}
}

// The file of --rejects is replaced when a run ends, however it does; until then the old one is whole. A run that
// continues another one keeps what that one rejected, also after a crash.
func TestRejectsAreReplacedAtTheEnd(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "rejects")
	check := func(when, want string) {
		t.Helper()
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(when, err)
		}
		got := ""
		for line := range strings.Lines(string(content)) {
			_, rest, _ := strings.Cut(line, `"line":`)
			got += rest[:1]
		}
		if got != want {
			t.Errorf("%s: the rejects are of the lines %s, want %s", when, got, want)
		}
	}
	begin := func(run string, continued bool, lines ...int) *rejects {
		t.Helper()
		r, err := newRejects(path, run, continued, os.Stderr)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range lines {
			if err := r.add(ingest.Reject{Line: line, Record: []byte("{}")}); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.flush(); err != nil {
			t.Fatal(err)
		}
		return r
	}
	end := func(r *rejects) {
		t.Helper()
		if err := r.close(); err != nil {
			t.Fatal(err)
		}
	}
	crash := func(r *rejects) { r.file.Close() }
	end(begin("run", false, 1, 2))
	check("a new run", "12")
	crash(begin("run", false, 3))
	check("a crash", "12")
	crash(begin("other", false, 9))
	crash(begin("run", true, 4))
	check("a crash of the run that continues it", "12")
	end(begin("run", true, 5))
	check("the end", "345")
	interrupted := begin("run", false, 6)
	end(interrupted)
	crash(begin("run", true, 7))
	end(begin("run", true))
	check("continued after an interrupt and a crash", "67")
	end(begin("run", false))
	check("again, without rejects", "")
	end(begin("other", true))
	check("another run that crashed before", "9")
	end(begin("", false, 8))
	check("a run that cannot be continued", "8")
	if left, err := filepath.Glob(path + ".*"); len(left) > 0 || err != nil {
		t.Errorf("left behind: %v, %v", left, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("rejects are readable by others: %v, %v", info.Mode(), err)
	}
	// A link stays one.
	if err := os.Symlink(path, path+"-link"); err != nil {
		t.Fatal(err)
	}
	r, err := newRejects(path+"-link", "", false, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	end(r)
	check("through a link", "")
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
