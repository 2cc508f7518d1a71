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

	passed map[string]bool // the keys of rows for which it does not hold; of no interest but to --on-change
	whole  bool            // no limit has left rows out
}

// shownCrossings is how many are reported one by one.
const shownCrossings = 10

func (c *crossings) add(row report.Row) {
	few := false
	if c.least > 0 {
		n, ok := row[c.counting].Int64()
		few = ok && n < c.least
	}
	for _, t := range c.thresholds {
		crossing, ok := t.Crossed(c.columns, row)
		if !ok || few {
			if c.all {
				c.passed[t.At(c.columns, row).Key] = true
			}
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
		now, resolved, crossing := a.changes.since(crossed)
		if len(now)+len(resolved) > 0 {
			if err := a.changes.keep(crossing); err != nil {
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

// since compares what is crossed with the last time: what is so since then, and what no longer is. What a limit may
// have left out stays as it was. all is what is crossed as far as it is known, as the file has it.
func (s *alertState) since(crossed *crossings) (now []threshold.Crossing, resolved []string, all map[string]string) {
	all = make(map[string]string, len(crossed.found))
	for _, crossing := range crossed.found {
		if _, before := s.crossed[crossing.Key]; !before {
			now = append(now, crossing)
		}
		all[crossing.Key] = crossing.Where
	}
	for _, key := range slices.Sorted(maps.Keys(s.crossed)) {
		switch _, still := all[key]; {
		case still:
		case crossed.whole || crossed.passed[key]:
			resolved = append(resolved, s.crossed[key])
		default:
			all[key] = s.crossed[key]
		}
	}
	return now, resolved, all
}

// keep writes what is crossed for the next time.
func (s *alertState) keep(crossed map[string]string) error {
	s.crossed = crossed
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
