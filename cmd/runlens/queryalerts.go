package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"

	"github.com/runlens/runlens/cmd/internal/output"
	"github.com/runlens/runlens/cmd/internal/threshold"
	"github.com/runlens/runlens/http/client/report"
)

// crossings are the rows for which a threshold's condition holds.
type crossings struct {
	columns    []report.Column
	thresholds []threshold.Threshold
	counting   int   // the column that least is about; -1 for none
	least      int64 // rows that count less are left out

	all   bool // found has all, and not only those that are shown
	found []threshold.Crossing
	count int
}

// shownCrossings is how many are reported one by one.
const shownCrossings = 10

func (c *crossings) add(row report.Row) {
	if c.least > 0 {
		if n, ok := row[c.counting].Int64(); ok && n < c.least {
			return
		}
	}
	for _, t := range c.thresholds {
		crossing, ok := t.Crossed(c.columns, row)
		if !ok {
			continue
		}
		if c.count++; c.all || c.count <= shownCrossings {
			c.found = append(c.found, crossing)
		}
	}
}

// alert reports what is crossed, or what has changed of that since the last time. It is an exitError if something is
// crossed, or newly so.
func (a *asking) alert(crossed *crossings) error {
	found, count := crossed.found, crossed.count
	if a.changes != nil {
		now, resolved := a.changes.since(found)
		if len(now)+len(resolved) > 0 {
			if err := a.changes.keep(found); err != nil {
				return err
			}
		}
		for _, text := range resolved {
			say(a.err, "resolved: %s", text)
		}
		found, count = now, len(now)
	}
	for _, crossing := range found[:min(count, shownCrossings)] {
		say(a.err, "threshold: %v", crossing)
	}
	if count > shownCrossings {
		say(a.err, "threshold: and %d more", count-shownCrossings)
	}
	if count > 0 {
		return exitError{exitThreshold}
	}
	return nil
}

// An alertState is the file of --on-change: which rows crossed a threshold the last time.
type alertState struct {
	file    string
	crossed map[string]string // Where of each Crossing by its Key
}

// readAlerts reads the file of a state; one that is not there has nothing crossed.
func readAlerts(file string) (*alertState, error) {
	state := &alertState{file: file}
	content, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return state, nil
	case err != nil:
		return nil, fmt.Errorf("--on-change: %w", err)
	case json.Unmarshal(content, &state.crossed) != nil:
		return nil, fmt.Errorf("--on-change: %s was not written by --on-change; name another file", file)
	}
	return state, nil
}

// since compares what is crossed with the last time: what is so since then, and what no longer is.
func (s *alertState) since(found []threshold.Crossing) (now []threshold.Crossing, resolved []string) {
	gone := maps.Clone(s.crossed)
	for _, crossing := range found {
		if _, before := s.crossed[crossing.Key]; !before {
			now = append(now, crossing)
		}
		delete(gone, crossing.Key)
	}
	for _, key := range slices.Sorted(maps.Keys(gone)) {
		resolved = append(resolved, gone[key])
	}
	return now, resolved
}

// keep writes what is crossed for the next time.
func (s *alertState) keep(found []threshold.Crossing) error {
	s.crossed = make(map[string]string, len(found))
	for _, crossing := range found {
		s.crossed[crossing.Key] = crossing.Where
	}
	file, err := output.Create(s.file)
	if err != nil {
		return usageError{fmt.Errorf("--on-change: %w", err)}
	}
	return file.Fill(func(w io.Writer) error {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(s.crossed)
	})
}
