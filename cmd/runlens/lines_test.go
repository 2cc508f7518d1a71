package main_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	mostColumns = 120 // of a line of Go, Markdown or SQL, inclusive; a tab counts as 1
	mostLines   = 300 // of a Go file, inclusive
)

// longLines are tracked files and folders whose lines may be longer. A folder ends in "/". Markdown table rows may be
// longer in every file.
var longLines = []string{
	// What the compiler prints.
	"testdata/golden/",
	// Facts about samples of Parquet files.
	"ingest/source/testdata/",
}

func TestLinesAndFilesAreShort(t *testing.T) {
	for _, wrong := range tooLong(readTracked(t, "*.go", "*.md", "*.sql")) {
		t.Error(wrong)
	}
}

// Every exception is needed: without it, TestLinesAndFilesAreShort would fail.
func TestExceptionsForLongLinesAreUsed(t *testing.T) {
	files := readTracked(t, "*.go", "*.md", "*.sql")
	for _, exception := range longLines {
		used := false
		for name, content := range files {
			used = used || exceptionOf(name) == exception && len(longLinesOf(name, content)) > 0
		}
		if !used {
			t.Errorf("%s has no line that is too long: remove it from the exceptions", exception)
		}
	}
}

// TestLongLinesAreFound checks the bounds: 120 columns and 300 lines are allowed, one more is not.
func TestLongLinesAreFound(t *testing.T) {
	line := func(columns int) string { return "\t" + strings.Repeat("ä", columns-1) + "\n" }
	for name, c := range map[string]struct {
		file, content string
		want          int
	}{
		"120 columns":          {"a.go", line(120), 0},
		"121 columns":          {"a.go", line(119) + line(121), 1},
		"no newline at end":    {"a.sql", strings.TrimSuffix(line(121), "\n"), 1},
		"prose":                {"a.md", strings.Repeat("word ", 30), 1},
		"a table row":          {"a.md", "| " + strings.Repeat("word ", 30) + "|\n", 0},
		"a table row, not .md": {"a.sql", "| " + strings.Repeat("word ", 30) + "|\n", 1},
		"300 lines":            {"a.go", strings.Repeat("x\n", 300), 0},
		"301 lines":            {"a.go", strings.Repeat("x\n", 301), 1},
		"301 lines, not Go":    {"a.md", strings.Repeat("x\n", 301), 0},
		"an exception":         {"testdata/golden/a.sql", line(121), 0},
	} {
		if got := tooLong(map[string]string{c.file: c.content}); len(got) != c.want {
			t.Errorf("%s: found %q, want %d", name, got, c.want)
		}
	}
}

// tooLong returns a message for each Go file that is too long, and for each line that is, unless its file is an
// exception for lines. files are contents by name.
func tooLong(files map[string]string) (wrong []string) {
	for name, content := range files {
		if exceptionOf(name) == "" {
			wrong = append(wrong, longLinesOf(name, content)...)
		}
		if lines := strings.Count(content, "\n"); strings.HasSuffix(name, ".go") && lines > mostLines {
			wrong = append(wrong, fmt.Sprintf("%s has %d lines, more than %d", name, lines, mostLines))
		}
	}
	slices.Sort(wrong)
	return wrong
}

func longLinesOf(name, content string) (wrong []string) {
	number := 0
	for line := range strings.Lines(content) {
		number++
		columns := utf8.RuneCountInString(strings.TrimRight(line, "\r\n"))
		if columns <= mostColumns || strings.HasSuffix(name, ".md") && strings.HasPrefix(line, "|") {
			continue
		}
		wrong = append(wrong, fmt.Sprintf("%s:%d has %d columns, more than %d", name, number, columns, mostColumns))
	}
	return wrong
}

// exceptionOf returns the longest exception that covers a file; empty for none.
func exceptionOf(name string) (longest string) {
	for _, e := range longLines {
		covers := name == e || strings.HasSuffix(e, "/") && strings.HasPrefix(name, e)
		if covers && len(e) > len(longest) {
			longest = e
		}
	}
	return longest
}

// readTracked returns the contents of the files that git tracks, by name from the root of the repository. It skips the
// test where there is no git or no repository, as in a source archive. A file that is deleted but still tracked is
// left out.
func readTracked(t *testing.T, patterns ...string) map[string]string {
	t.Helper()
	command := exec.Command("git", append([]string{"ls-files", "-z", "--"}, patterns...)...)
	command.Dir = filepath.Join("..", "..")
	names, err := command.Output()
	if err != nil {
		t.Skipf("git ls-files: %v", err)
	}
	files := map[string]string{}
	for name := range bytes.SplitSeq(bytes.TrimSuffix(names, []byte{0}), []byte{0}) {
		content, err := os.ReadFile(filepath.Join(command.Dir, string(name)))
		switch {
		case os.IsNotExist(err):
		case err != nil:
			t.Fatal(err)
		default:
			files[string(name)] = string(content)
		}
	}
	if len(files) < 300 {
		t.Fatalf("%d files are tracked; the test reads the wrong folder", len(files))
	}
	return files
}
