package main

import (
	"maps"
	"testing"
	"time"
)

// An answer of a moment between the question and its arrival is right; each other one is counted as what it is.
func TestAnswersDuringMoves(t *testing.T) {
	const sourceDay, seenAsOf = "2026-02-03", "2026-11-25T15:00:00.000Z"
	fileDay := epoch.Format(time.DateOnly)
	const acknowledged, before, sent, inSource = 4, 2, 5, 3
	b := bounds{acknowledged, map[string]sighting{sourceDay: {before, seenAsOf}}, sent, inSource}
	whole := map[string]int{sourceDay: before}
	for n := range movedRuns {
		whole[epoch.AddDate(0, 2*(n%3), n%20).Format(time.DateOnly)] = acknowledged
	}
	if len(whole) != movedRuns+1 {
		t.Fatalf("a file has records on %d days, want %d", len(whole)-1, movedRuns)
	}
	for _, c := range []struct {
		name                       string
		asOf                       string
		day                        string
		count                      int
		partial, receding, doubled int
	}{
		{"what was acknowledged", seenAsOf, fileDay, acknowledged, 0, 0, 0},
		{"what was sent too", seenAsOf, fileDay, sent, 0, 0, 0},
		{"all of the source", seenAsOf, sourceDay, inSource, 0, 0, 0},
		{"a lost file", seenAsOf, fileDay, acknowledged - 1, 1, 0, 0},
		{"a doubled file", seenAsOf, fileDay, sent + 1, 0, 0, 1},
		{"what was seen before is gone", seenAsOf, sourceDay, before - 1, 0, 1, 0},
		{"what was seen later is not there yet", "2026-11-25T14:59:59.999Z", sourceDay, before - 1, 0, 0, 0},
		{"a doubled row of the source", seenAsOf, sourceDay, inSource + 1, 0, 0, 1},
		{"a day that nobody wrote", seenAsOf, "2026-04-01", 1, 0, 0, 1},
	} {
		days := maps.Clone(whole)
		days[c.day] = c.count
		r := &relocation{}
		r.compare(&movedOrganization{name: "acme"}, question{}, c.asOf, days, b)
		a := &r.asked
		if a.partial.count() != c.partial || a.receding.count() != c.receding || a.doubled.count() != c.doubled {
			t.Errorf("%s: %d partial, %d receding, %d doubled", c.name, a.partial.count(), a.receding.count(),
				a.doubled.count())
		}
	}
}
