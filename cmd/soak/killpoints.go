package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/runlens/runlens/cmd/internal/trap"
)

var renameCalls = []string{"rename", "renameat", "renameat2"}

const (
	// callDelay is the time to kill an engine that is about to make a call, or has just made it.
	callDelay = 40 * time.Millisecond
	// sendDelay is the same for the many small calls that are an answer over HTTP.
	sendDelay = 5 * time.Millisecond
)

// renaming is a rename in a table's folder, from a name that begins with prefix.
func renaming(folder, prefix string) *regexp.Regexp {
	return regexp.MustCompile(`^rename\w*\(.*?/` + folder + `/` + prefix)
}

// atRename are the points before and after the n-th rename by which something of a table comes into being.
func atRename(table, folder, what, prefix string, n int) []trap.Point {
	p := trap.Point{Steps: []*regexp.Regexp{renaming(folder, prefix)}, Nth: n, Watch: renameCalls, Delay: renameCalls,
		For: callDelay}
	return beforeAndAfter(p, fmt.Sprintf("the rename of %s %d of %s", what, n, table))
}

func beforeAndAfter(p trap.Point, what string) []trap.Point {
	before, after := p, p
	before.Name, after.Name, after.After = "before "+what, "after "+what, true
	return []trap.Point{before, after}
}

// atPart are the points before and after a new part of a table gets its name: from then on its rows are seen.
func (s *killStore) atPart(table string, n int) []trap.Point {
	return atRename(table, s.folders[table], "part", "tmp_insert_", n)
}

// atLog are the points before and after the n-th entry in a table's deduplication log, which comes before the rename.
func (s *killStore) atLog(table string, n int) []trap.Point {
	folder := s.folders[table]
	logs := filepath.Join(s.product.DataDir, "engine", "store", "store", folder[:3], folder, "deduplication_logs", "*")
	if kept, _ := filepath.Glob(logs); len(kept) == 0 {
		return nil // the table keeps none
	}
	p := trap.Point{Steps: []*regexp.Regexp{regexp.MustCompile(`^write\(\d+<.*/` + folder + `/deduplication_logs/`)},
		Nth:   n,
		Watch: []string{"write"}, Delay: []string{"write"}, For: callDelay, Files: logs}
	return beforeAndAfter(p, fmt.Sprintf("log entry %d of %s", n, table))
}

// atAnswer are the points before and after the store acknowledges an insert into a table.
func (s *killStore) atAnswer(table string, n int) []trap.Point {
	steps := []*regexp.Regexp{renaming(s.folders[table], "tmp_insert_"), regexp.MustCompile(`^sendto\(.*"HTTP/1.1 200`)}
	p := trap.Point{Steps: steps, Nth: n, Watch: append([]string{"sendto"}, renameCalls...), Delay: []string{"sendto"},
		For: sendDelay}
	return beforeAndAfter(p, fmt.Sprintf("the answer to insert %d into %s", n, table))
}

// atMutation are the points at which a table's change is accepted, and at which the first part of it is complete.
func (s *killStore) atMutation(table string, n int) []trap.Point {
	folder := s.folders[table]
	accepted := atRename(table, folder, "change", "tmp_mutation_", n)
	return append(accepted, atRename(table, folder, "changed part", "tmp_(mut|clone)_[^/]*/\", ", n)...)
}

// folderExists reports whether the table's folder is where the points search for it.
func folderExists(dataDir, folder string) bool {
	_, err := os.Stat(filepath.Join(dataDir, "engine", "store", "store", folder[:3], folder))
	return err == nil
}
