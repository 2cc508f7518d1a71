package olaptest

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/runlens/runlens/olap/catalog"
)

// The pools are small so that rows meet: shared identifiers, names, agents and runs.
var (
	statuses = []string{"PENDING", "RUNNING", "WAITING_FOR_SLOT", "CANCELLING", "AWAITING_REPLY", "SLEEPING", "PAUSING",
		"PAUSED", "COMPLETED", "FAILED", "CANCELLED"}
	kinds       = []string{"agent", "agent", "agent", "sub_agent", "browser", "phone", "inbound_phone", "platform"}
	types       = []string{"", "internal", "external", "automated", "unknown"}
	identifiers = []string{"", "ada@example.com", "bob@example.org", "+15550100", "cron", "É@example.com",
		"o'brien\\\t\n@example.com"}
	people = []string{"ada@example.com", "bob@example.org", "+15550100", "zoë@example.com", "o'brien\\@example.com"}
	names  = []string{"", "Ada", "ada", "Zoë", "Ōe"}
	// Two names that share the 48 bits of the hash that an initiator key has of a name: two of the 16 pairs or so among
	// "Ada 0" to "Ada 99999999", found by grouping these by bitShiftRight(cityHash64(name), 16) in ClickHouse.
	SharingNames = []string{"Ada 16057918", "Ada 4325819"}

	slugs       = []string{"", "support", "sales", "it's", ID(2).String()} // the last is the id of another agent too
	activities  = []string{"initiated", "associated", "interacted"}
	initiations = []string{"human", "automated", "unknown"}
	sources     = []string{"slack", "web", "e-mail\\"}
	zones       = []string{"UTC", "Europe/Stockholm", "America/St_Johns", "Asia/Kathmandu", "America/Santiago",
		"Pacific/Apia", "Etc/GMT+12"}

	// 2022-09-11 begins at 01:00 in Santiago; the other days see the ends of summer time elsewhere.
	firstInstant = time.Date(2022, 9, 8, 0, 0, 0, 0, time.UTC)
	spanMillis   = int64(60 * 24 * 60 * 60 * 1000)
)

// ID is a version of uuid.UUID that reads well in failures: n in the last digits, and in the first
// so that ClickHouse's own order of UUIDs differs from the order of their texts.
func ID(n int) uuid.UUID {
	var id uuid.UUID
	id[0], id[15] = byte(n*37), byte(n)
	return id
}

// DrawRecords draws the records of an organization, with superseded versions, repeats and nulls.
func DrawRecords(t *rapid.T, organization string) Records {
	var records Records
	for i := range rapid.IntRange(0, 5).Draw(t, "agents") {
		for version := range rapid.IntRange(1, 3).Draw(t, "agent versions") {
			a := Agent{Organization: organization, ID: ID(i), Name: fmt.Sprintf("Agent %d.%d", i, version),
				UpdatedAt: drawVersion(t, version)}
			a.Slug = drawOptional(t, slugs, "slug")
			if rapid.Bool().Draw(t, "deleted") {
				// Different for every agent: of two deleted at the same instant either might have the slug.
				deleted := firstInstant.Add(time.Duration(100*rapid.IntRange(0, 9).Draw(t, "deleted at")+i) * time.Hour)
				a.DeletedAt = &deleted
			}
			records.Agents = append(records.Agents, a)
		}
	}
	ofInitiators := names
	if rapid.IntRange(0, 7).Draw(t, "names share a key") == 0 {
		ofInitiators = slices.Concat(names, SharingNames)
	}
	years := rapid.SampledFrom([]int{-2, 1, 3}).Draw(t, "years away")
	for i := range rapid.IntRange(0, 20).Draw(t, "runs") {
		created := drawCreation(t, years)
		for version := range rapid.IntRange(1, 3).Draw(t, "run versions") {
			records.Runs = append(records.Runs, Run{
				Organization: organization, ID: ID(i), CreatedAt: created,
				AgentID: ID(rapid.IntRange(0, 6).Draw(t, "agent")), Kind: rapid.SampledFrom(kinds).Draw(t, "kind"),
				Status:     rapid.SampledFrom(statuses).Draw(t, "status"),
				Identifier: drawOptional(t, identifiers, "identifier"), Name: drawOptional(t, ofInitiators, "name"),
				Type:      drawOptional(t, types, "type"),
				UpdatedAt: drawVersion(t, version),
			})
		}
	}
	for i := range rapid.IntRange(0, 30).Draw(t, "attributions") {
		records.Attributions = append(records.Attributions, Attribution{
			Organization: organization, ID: ID(i), RunID: ID(rapid.IntRange(0, 25).Draw(t, "run")),
			AgentID:    ID(rapid.IntRange(0, 6).Draw(t, "agent")),
			Identifier: rapid.SampledFrom(people).Draw(t, "person"), Name: drawOptional(t, names, "name"),
			Activity: rapid.SampledFrom(activities).Draw(t, "activity"), InitiationType: rapid.SampledFrom(initiations).Draw(t,
				"initiation"),
			Source: rapid.SampledFrom(sources).Draw(t, "source"), OccurredAt: drawInstant(t, "occurred"),
		})
	}
	return records
}

// One agent's slugs must differ between agents that are not deleted, or it is open which of them a
// filter means; the source keeps that, and so does this.
func UniqueLiveSlugs(records Records, organization string) bool {
	taken := map[string]bool{}
	for _, a := range newestAgents(records, organization) {
		if a.DeletedAt == nil && a.Slug != nil {
			if taken[*a.Slug] {
				return false
			}
			taken[*a.Slug] = true
		}
	}
	return true
}

// Batches returns the records in several batches in another order and with repeats: another
// history of copying the same rows.
func (r Records) Batches(t *rapid.T) []Records {
	batches := make([]Records, rapid.IntRange(1, 3).Draw(t, "batches"))
	for i := range batches {
		batches[i].Agents = drawPart(t, r.Agents, i == 0)
		batches[i].Runs = drawPart(t, r.Runs, i == 0)
		batches[i].Attributions = drawPart(t, r.Attributions, i == 0)
	}
	return rapid.Permutation(batches).Draw(t, "order of batches")
}

// drawPart is all of the records in another order, or some of them, some twice.
func drawPart[R any](t *rapid.T, records []R, all bool) []R {
	if all {
		return rapid.Permutation(records).Draw(t, "order")
	}
	if len(records) == 0 {
		return nil
	}
	return rapid.SliceOfN(rapid.SampledFrom(records), 0, len(records)).Draw(t, "repeats")
}

// DrawQuery draws a valid query of either model.
func DrawQuery(t *rapid.T) Query {
	model := rapid.SampledFrom(catalog.Models).Draw(t, "model")
	q := Query{Model: model.Name}
	var metrics, dimensions []string
	for _, m := range model.Metrics {
		metrics = append(metrics, m.Name)
	}
	for _, d := range model.Dimensions {
		dimensions = append(dimensions, d.Name)
	}
	q.Metrics = rapid.SliceOfNDistinct(rapid.SampledFrom(metrics), 1, len(metrics), rapid.ID).Draw(t, "metrics")
	q.Dimensions = rapid.SliceOfNDistinct(rapid.SampledFrom(dimensions), 0, 4, rapid.ID).Draw(t, "dimensions")
	for range rapid.IntRange(0, 2).Draw(t, "filters") {
		q.Filters = append(q.Filters, drawFilter(t, rapid.SampledFrom(dimensions).Draw(t, "filtered")))
	}
	first := firstInstant.AddDate(0, 0, rapid.IntRange(-2, 40).Draw(t, "first day"))
	days := rapid.IntRange(0, 60).Draw(t, "days")
	if rapid.IntRange(0, 4).Draw(t, "long") == 0 {
		days += 300 // the longest range is 366 days
	}
	last := first.AddDate(0, 0, days)
	q.Range = Range{first.Format(time.DateOnly), last.Format(time.DateOnly), rapid.SampledFrom(zones).Draw(t, "zone")}
	if len(q.Dimensions) > 0 {
		members := slices.Concat(q.Dimensions, q.Metrics)
		for _, member := range rapid.SliceOfNDistinct(rapid.SampledFrom(members), 0, 4, rapid.ID).Draw(t, "order") {
			q.Order = append(q.Order, Term{member, rapid.SampledFrom([]string{"asc", "desc"}).Draw(t, "direction")})
		}
	}
	q.Limit = rapid.SampledFrom([]int{1, 2, 3, 7, 500}).Draw(t, "limit")
	return q
}

// DrawSum draws a query whose metrics are all additive, or derived from such, by dimensions with few records a value.
func DrawSum(t *rapid.T) Query {
	q := DrawQuery(t)
	only := func(members []string, allowed ...string) []string {
		return slices.DeleteFunc(members, func(m string) bool { return !slices.Contains(allowed, m) })
	}
	if q.Model == "agent_runs" {
		return q
	}
	refreshed := []string{"agent_id", "activity_type", "day"}
	q.Metrics = []string{"interaction_count"}
	q.Dimensions = only(q.Dimensions, refreshed...)
	q.Filters = slices.DeleteFunc(q.Filters, func(f Filter) bool { return !slices.Contains(refreshed, f.Member) })
	q.Order = slices.DeleteFunc(q.Order, func(o Term) bool {
		return len(q.Dimensions) == 0 || !slices.Contains(slices.Concat(q.Dimensions, q.Metrics), o.Member)
	})
	return q
}

func drawFilter(t *rapid.T, member string) Filter {
	var pool []string
	switch member {
	case "agent_id":
		pool = []string{ID(0).String(), "25000000-0000-0000-0000-000000000001", "4A000000-0000-0000-0000-000000000002",
			"support", "sales", "it's", "nobody"}
	case "user_identifier":
		pool = append([]string{"cron", " ADA@example.com\n", "nobody"}, people...)
	case "user_type":
		pool = []string{"internal", "automated", "unknown", "nobody"}
	case "user_domain":
		pool = []string{"example.com", "example.org", "EXAMPLE.com"}
	case "activity_type":
		pool = activities
	case "run_initiation_type":
		pool = initiations
	case "source":
		pool = sources
	case "day":
		pool = []string{"2022-09-10", "2022-09-11", "2022-10-30", "2022-11-06", "2022-09-15"}
	}
	if rapid.Bool().Draw(t, "eq") {
		return Filter{Member: member, Op: "eq", Value: rapid.SampledFrom(pool).Draw(t, "value")}
	}
	return Filter{Member: member, Op: "in", Values: rapid.SliceOfN(rapid.SampledFrom(pool), 1, 4).Draw(t, "values")}
}

func drawInstant(t *rapid.T, label string) time.Time {
	return firstInstant.Add(time.Duration(rapid.Int64Range(0, spanMillis-1).Draw(t, label)) * time.Millisecond)
}

// drawCreation is the creation of a run: mostly in the span of the attribution records, and sometimes some years before
// or after it, so that the records of a run lie inside and outside the join window. An organization has runs in one
// such year, because every month costs a part for each insert.
func drawCreation(t *rapid.T, years int) time.Time {
	created := drawInstant(t, "created")
	if rapid.IntRange(0, 6).Draw(t, "years") > 3 {
		created = created.AddDate(years, 0, 0)
	}
	return created
}

// drawVersion is the time of a version; later versions have later times here, and batches are shuffled afterwards.
func drawVersion(t *rapid.T, version int) time.Time {
	return firstInstant.Add(time.Duration(version)*time.Hour +
		time.Duration(rapid.IntRange(0, 999).Draw(t, "updated"))*time.Millisecond)
}

func drawOptional(t *rapid.T, pool []string, label string) *string {
	value := rapid.SampledFrom(pool).Draw(t, label)
	if value == "" {
		return nil
	}
	return &value
}
