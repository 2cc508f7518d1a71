package olaptest

import (
	"slices"
	"time"

	"pgregory.net/rapid"
)

// moves are by how much a clock that should never change does so: rounding, another zone, months, years.
var moves = []time.Duration{time.Millisecond, -time.Millisecond, time.Hour, -30 * 24 * time.Hour, 61 * 24 * time.Hour,
	-3 * 365 * 24 * time.Hour}

// DrawBroken draws what a source sends that changes what should never change: batches, in the order of their
// storing, with runs whose created_at moves, also back and forth and between versions of one updated_at, and
// attribution records that come again with other content or another occurred_at, and repeats of all of it. The copies
// of an attribution record in one batch are alike, because they are stored in one millisecond.
func DrawBroken(t *rapid.T, organization string) []Records {
	original := DrawRecords(t, organization)
	sent := original
	sent.Runs, sent.Attributions = slices.Clone(original.Runs), slices.Clone(original.Attributions)
	for range rapid.IntRange(0, 12).Draw(t, "moved runs") {
		if len(sent.Runs) == 0 {
			break
		}
		r := rapid.SampledFrom(sent.Runs).Draw(t, "run to move")
		r.CreatedAt = r.CreatedAt.Add(rapid.SampledFrom(moves).Draw(t, "move"))
		if rapid.IntRange(0, 3).Draw(t, "same version") > 0 {
			r.UpdatedAt = drawVersion(t, rapid.IntRange(1, 4).Draw(t, "version"))
			r.Status = rapid.SampledFrom(statuses).Draw(t, "status")
		}
		sent.Runs = append(sent.Runs, r)
	}
	batches := make([]Records, rapid.IntRange(1, 5).Draw(t, "batches"))
	for i := range batches {
		if i == 0 {
			batches[i].Agents, batches[i].Runs = sent.Agents, rapid.Permutation(sent.Runs).Draw(t, "order")
		} else {
			batches[i].Runs = drawPart(t, sent.Runs, false)
		}
		for _, a := range drawPart(t, original.Attributions, i == 0) {
			if slices.ContainsFunc(batches[i].Attributions, func(other Attribution) bool { return other.ID == a.ID }) {
				continue
			}
			if rapid.IntRange(0, 2).Draw(t, "changed") == 0 {
				a = drawChanged(t, a)
			}
			batches[i].Attributions = append(batches[i].Attributions, a)
		}
	}
	runsLast := rapid.IntRange(0, len(batches)-1).Draw(t, "batch with all runs")
	batches[0].Runs, batches[runsLast].Runs = batches[runsLast].Runs, batches[0].Runs
	return batches
}

// drawChanged changes some of the fields of an attribution record.
func drawChanged(t *rapid.T, a Attribution) Attribution {
	some := func(label string) bool { return rapid.IntRange(0, 2).Draw(t, label) == 0 }
	if some("other agent") {
		a.AgentID = ID(rapid.IntRange(0, 6).Draw(t, "agent"))
	}
	if some("other run") {
		a.RunID = ID(rapid.IntRange(0, 25).Draw(t, "run"))
	}
	if some("other person") {
		a.Identifier = rapid.SampledFrom(people).Draw(t, "person")
	}
	if some("other name") {
		a.Name = drawOptional(t, names, "name")
	}
	if some("other activity") {
		a.Activity = rapid.SampledFrom(activities).Draw(t, "activity")
	}
	if some("other source") {
		a.Source = rapid.SampledFrom(sources).Draw(t, "source")
	}
	if some("other clock") {
		a.OccurredAt = a.OccurredAt.Add(rapid.SampledFrom(moves).Draw(t, "move"))
	}
	return a
}

// Join returns batches as one, in their order.
func Join(batches []Records) (all Records) {
	for _, b := range batches {
		all.Agents = append(all.Agents, b.Agents...)
		all.Runs = append(all.Runs, b.Runs...)
		all.Attributions = append(all.Attributions, b.Attributions...)
	}
	return all
}
