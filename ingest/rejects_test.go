package ingest

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The file of --rejects is replaced when a run ends, however it does; until then the old one is whole. A run that
// continues another one keeps what that one rejected, also after a crash.
func TestRejectsAreReplacedAtTheEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rejects")
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
	begin := func(run string, continued bool, lines ...int) *Rejects {
		t.Helper()
		r, err := NewRejects(path, run, continued)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range lines {
			if err := r.Add(Reject{Line: line, Record: []byte("{}")}); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Flush(); err != nil {
			t.Fatal(err)
		}
		return r
	}
	end := func(r *Rejects) {
		t.Helper()
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	crash := func(r *Rejects) { r.file.Close() }
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
}

// Two runs of the same files at a time would write into one file. The second is refused, and changes nothing.
func TestRejectsOfOneRunAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rejects")
	for _, continued := range []bool{false, true} {
		first, err := NewRejects(path, "run", continued)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(first.Add(Reject{Line: 1, Record: []byte("{}")}), first.Flush()); err != nil {
			t.Fatal(err)
		}
		for _, continued := range []bool{false, true} {
			if _, err := NewRejects(path, "run", continued); err == nil || !strings.Contains(err.Error(), "another run") {
				t.Errorf("a second run: %v", err)
			}
		}
		other, err := NewRejects(path, "other", false)
		if err != nil {
			t.Fatal(err)
		}
		if err := other.file.Close(); err != nil {
			t.Fatal(err)
		}
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
	}
	content, err := os.ReadFile(path)
	if err != nil || strings.Count(string(content), "\n") != 2 {
		t.Errorf("%q, %v, want the rejects of both runs", content, err)
	}
}

// The file to which a worker appends may be moved or removed at any time.
func TestRejectsOfAFileThatIsTakenAway(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rejects")
	r, err := AppendRejects(path, func(file *os.File) io.Writer { return file })
	if err != nil {
		t.Fatal(err)
	}
	line := 0
	add := func() {
		t.Helper()
		line++
		if err := r.AddNow(Reject{Line: line, Record: []byte("{}")}); err != nil {
			t.Fatal(err)
		}
	}
	add()
	add()
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	add()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	add()
	add()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string][]string{path: {`"line":4`, `"line":5`}, path + ".1": {`"line":1`, `"line":2`}} {
		content, err := os.ReadFile(path)
		if err != nil || strings.Count(string(content), "\n") != len(want) ||
			!strings.Contains(string(content), want[0]) || !strings.Contains(string(content), want[1]) {
			t.Errorf("%s: %q, %v, want %q", path, content, err, want)
		}
	}
}

// An error names the path that was given, not the file that was to take its place.
func TestRejectsNameThePath(t *testing.T) {
	path := filepath.Join(t.TempDir(), "nowhere", "rejects.ndjson")
	for _, run := range []string{"", "abc"} {
		if _, err := NewRejects(path, run, false); err == nil || err.Error() != path+": no such file or directory" {
			t.Errorf("%q: %v", run, err)
		}
	}
}
