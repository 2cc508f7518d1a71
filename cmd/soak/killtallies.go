package main

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

// A tally is what was seen of one point.
type tally struct{ kills, misses, lost, doubled, differing int }

// find counts what is wrong.
func (t *tally) find(f finding) {
	t.lost, t.doubled, t.differing = t.lost+f.lost, t.doubled+f.doubled, t.differing+f.differing
}

// tallies are those of all points, by hunt and point.
type tallies struct {
	lock  sync.Mutex
	of    map[string]*tally
	notes examples
}

// unknownPoint is for what is wrong with a store where it is unknown which kill did it.
const unknownPoint = "a group of kills"

func (t *tallies) at(hunt, point string) *tally {
	if point == "" {
		point = unknownPoint
	}
	name := hunt + ": " + point
	if t.of[name] == nil {
		t.of[name] = &tally{}
	}
	return t.of[name]
}

// add counts a cycle, which killed the engine at its point or did not.
func (t *tallies) add(hunt, point string, hit bool) {
	t.lock.Lock()
	defer t.lock.Unlock()
	if hit {
		t.at(hunt, point).kills++
	} else {
		t.at(hunt, point).misses++
	}
}

func (t *tallies) find(hunt, point string, f finding) {
	t.notes.add("%s at %q: %s", f.cycle, point, f.what)
	t.lock.Lock()
	defer t.lock.Unlock()
	t.at(hunt, point).find(f)
}

func (t *tallies) kills() (n int) {
	t.lock.Lock()
	defer t.lock.Unlock()
	for _, at := range t.of {
		n += at.kills
	}
	return n
}

// report adds a line for each point, and one for all of them, of which so many kills were wanted.
func (t *tallies) report(s *soak, wanted int) {
	kills := t.kills()
	t.lock.Lock()
	defer t.lock.Unlock()
	var sum tally
	for _, name := range slices.Sorted(maps.Keys(t.of)) {
		at := t.of[name]
		s.hold(name, fmt.Sprintf("%d kills, %d misses; %d lost, %d doubled, %d different", at.kills, at.misses, at.lost,
			at.doubled, at.differing), "0, 0, 0", at.lost+at.doubled+at.differing == 0)
		sum.lost, sum.doubled, sum.differing = sum.lost+at.lost, sum.doubled+at.doubled, sum.differing+at.differing
	}
	s.hold("kills at chosen points", fmt.Sprint(kills), fmt.Sprintf("at least %d", wanted), kills >= wanted)
	s.hold("all points", fmt.Sprintf("%d lost, %d doubled, %d different", sum.lost, sum.doubled, sum.differing), "0, 0, 0",
		sum == tally{})
	for _, note := range t.notes.first() {
		s.report.notes.Add("%s, %s", s.part, note)
	}
}
