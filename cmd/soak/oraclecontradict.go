package main

import (
	"bufio"
	"time"
)

// contradict sends a run again that moved, as its newest version or as an older one, and an attribution record with
// another content, clock or both, of the same person: whose copies a purge takes out decides which of them counts.
func (a *author) contradict(out *bufio.Writer, c *chronicle) {
	if r := &c.runs[a.random.IntN(len(c.runs))]; a.random.IntN(4) > 0 {
		r.CreatedAt = a.instant()
		a.draw(c, r)
		a.writeRun(out, c, *r)
	} else {
		older := *r
		older.CreatedAt, older.UpdatedAt = a.instant(), a.today.Add(-time.Hour)
		a.writeRun(out, c, older)
	}
	at := one(a, c.records)
	if a.random.IntN(2) == 0 {
		at.OccurredAt = a.instant()
	}
	if a.random.IntN(3) > 0 {
		at.Activity, at.Source, at.Name = one(a, drawnActivities), one(a, drawnSources), a.name(c)
	}
	a.writeAttribution(out, c, at)
}
