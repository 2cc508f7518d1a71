package main

import (
	"io"
	"math"
	"math/rand/v2"
	"time"
)

const (
	historyMonths = 13
	dayLength     = 24 * time.Hour
)

var (
	supporting     = []string{"sub_agent", "browser", "phone", "inbound_phone", "platform"}
	sources        = []string{"web", "web", "web", "slack", "slack", "email", "phone", "api"}
	activeStatuses = []string{
		"RUNNING",
		"RUNNING",
		"RUNNING",
		"WAITING_FOR_SLOT",
		"AWAITING_REPLY",
		"SLEEPING",
		"PAUSED",
		"PAUSING",
		"CANCELLING",
		"PENDING",
	}
)

// generate writes every record whose time is at or before until.
func generate(out io.Writer, seed uint64, until time.Time) error {
	w := newWriter(out, seed)
	first := until.AddDate(0, -historyMonths, 0).Truncate(dayLength)
	var worlds []world
	for _, o := range organizations {
		world := newWorld(seed, o.id, o.runsPerDay, o.agents, o.people)
		world.retire(seed)
		for _, a := range world.agents {
			for _, version := range a.versions {
				if version.UpdatedAt <= instant(until) {
					w.write(version)
				}
			}
		}
		worlds = append(worlds, world)
	}
	for day := first; !day.After(until); day = day.Add(dayLength) {
		for i := range worlds {
			d := newDay(w, &worlds[i], seed, day, until)
			d.write()
		}
	}
	return w.err
}

// retire deletes the second to last agent, and every eleventh one, on days of their own.
func (w *world) retire(seed uint64) {
	r := randomFor(seed, w.id, worldDay+1)
	for i := range w.agents {
		a := &w.agents[i]
		if i != len(w.agents)-2 && i%11 != 10 {
			continue
		}
		at := beginning.AddDate(5, r.IntN(20), r.IntN(28))
		deleted := instant(at)
		version := a.versions[len(a.versions)-1]
		version.DeletedAt, version.UpdatedAt = &deleted, deleted
		a.versions = append(a.versions, version)
		a.gone = dayNumber(at)
		if i == len(w.agents)-2 {
			w.agents[i+1].firstDay = a.gone
		}
	}
}

func dayNumber(t time.Time) int { return int(t.Unix() / int64(dayLength/time.Second)) }

// A day is one organization's day; its records depend on nothing but the seed, the organization and the day.
type day struct {
	*world
	out   *writer
	r     *rand.Rand
	start time.Time
	until time.Time
}

func newDay(out *writer, w *world, seed uint64, start, until time.Time) *day {
	return &day{world: w, out: out, r: randomFor(seed, w.id, uint64(dayNumber(start))), start: start, until: until}
}

// rhythm is low on weekends and grows by half in a year.
func (d *day) rhythm() float64 {
	years := float64(dayNumber(d.start)-dayNumber(beginning)) / 365.25
	factor := math.Pow(1.5, years-6.3)
	if weekday := d.start.Weekday(); weekday == time.Saturday || weekday == time.Sunday {
		factor *= 0.3
	}
	return factor * (0.85 + 0.3*d.r.Float64())
}

func (d *day) write() {
	for range int(d.runsPerDay * d.rhythm()) {
		d.run()
	}
}

// pick favours the first of n choices, as some agents and people are busier than others.
func (d *day) pick(n int) int {
	return min(int(float64(n)*math.Pow(d.r.Float64(), 2.2)), n-1)
}

func (d *day) pickAgent() string {
	for {
		if a := d.agents[d.pick(len(d.agents))]; a.firstDay <= dayNumber(d.start) && dayNumber(d.start) < a.gone {
			return a.id
		}
	}
}

// run writes one run with its versions, its attribution records and the runs that support it.
func (d *day) run() {
	record := runRecord{Record: "run", OrganizationID: d.id, RunID: newID(d.r), AgentID: d.pickAgent(), Kind: "agent"}
	var initiator *person
	var created time.Time
	if d.r.IntN(100) < 22 {
		record.InitiatorType = "automated"
		record.InitiatorIdentifier = d.automated[d.r.IntN(len(d.automated))]
		created = d.start.Add(time.Duration(d.r.Int64N(int64(dayLength))))
	} else {
		initiator = &d.people[d.pick(len(d.people))]
		created = d.officeHour(initiator)
		if d.r.IntN(50) > 0 { // now and then nobody noted who it was
			record.InitiatorIdentifier, record.InitiatorName = initiator.identifier, d.nameOf(initiator)
			record.InitiatorType = "external"
			if initiator.internal {
				record.InitiatorType = "internal"
			}
		} else if d.r.IntN(2) == 0 {
			record.InitiatorType = "unknown"
		}
	}
	created = created.Truncate(time.Millisecond)
	record.CreatedAt = instant(created)
	ended := d.versions(record, created)
	for range d.r.IntN(10) / 9 {
		d.support(record, created)
	}
	d.attributions(record, initiator, created, ended)
}

// officeHour is a time of the person's working day, seldom earlier or later.
func (d *day) officeHour(p *person) time.Time {
	hour := 13 + 2.6*d.r.NormFloat64()
	at := d.start.Add(time.Duration(hour*float64(time.Hour)) - p.offset)
	// It belongs to the day whose random numbers drew it.
	if at.Before(d.start) {
		at = at.Add(dayLength)
	}
	if !at.Before(d.start.Add(dayLength)) {
		at = at.Add(-dayLength)
	}
	return at
}

func (d *day) nameOf(p *person) string { return p.names[d.r.IntN(len(p.names))] }

// versions writes the run as copying saw it: the last version at or before until, and for some runs earlier ones.
func (d *day) versions(record runRecord, created time.Time) (ended time.Time) {
	minutes := 4 * d.r.ExpFloat64()
	if d.r.IntN(14) == 0 {
		minutes *= 300 // waits for somebody, for hours or days
	}
	ended = created.Add(time.Duration(minutes * float64(time.Minute))).Truncate(time.Millisecond)
	status := "COMPLETED"
	switch n := d.r.IntN(100); {
	case n < 7:
		status = "FAILED"
	case n < 11:
		status = "CANCELLED"
	}
	active := activeStatuses[d.r.IntN(len(activeStatuses))]
	seen := d.r.IntN(8) == 0 // copied while it was active
	if seen || ended.After(d.until) {
		record.Status, record.UpdatedAt = active, record.CreatedAt
		d.emit(record, created)
	}
	record.Status, record.UpdatedAt = status, instant(ended)
	d.emit(record, ended)
	return ended
}

// emit writes a record whose time has come.
func (d *day) emit(record any, at time.Time) {
	if !at.After(d.until) {
		d.out.write(record)
	}
}

func (d *day) support(parent runRecord, created time.Time) {
	record := parent
	record.RunID, record.ParentRunID, record.Kind = newID(d.r), parent.RunID, supporting[d.r.IntN(len(supporting))]
	at := created.Add(time.Duration(1+d.r.IntN(60)) * time.Second)
	record.Status, record.CreatedAt = "COMPLETED", instant(at)
	record.UpdatedAt = instant(at.Add(time.Minute))
	d.emit(record, at.Add(time.Minute))
}

func (d *day) attributions(run runRecord, initiator *person, created, ended time.Time) {
	source := sources[d.r.IntN(len(sources))]
	initiation := "human"
	if initiator == nil {
		initiation = "automated"
	} else if d.r.IntN(60) == 0 {
		initiation = "unknown"
	}
	write := func(p *person, activity string, at time.Time) {
		at = at.Truncate(time.Millisecond)
		d.emit(attributionRecord{
			Record: "attribution", OrganizationID: d.id, AttributionID: newID(d.r), RunID: run.RunID, AgentID: run.AgentID,
			UserIdentifier: p.identifier, UserName: d.nameOf(p), ActivityType: activity, RunInitiationType: initiation,
			Source: source, OccurredAt: instant(at),
		}, at)
	}
	if initiator != nil && run.InitiatorIdentifier != "" {
		write(initiator, "initiated", created)
	}
	others := 0
	if d.r.IntN(3) == 0 {
		others = 1 + d.r.IntN(2)
	}
	people := []*person{initiator}
	for range others {
		p := &d.people[d.pick(len(d.people))]
		write(p, "associated", created.Add(time.Duration(d.r.IntN(120))*time.Second))
		people = append(people, p)
	}
	for range d.r.IntN(4) * d.r.IntN(2) {
		if p := people[d.r.IntN(len(people))]; p != nil {
			write(p, "interacted", created.Add(time.Duration(d.r.Float64()*float64(ended.Sub(created)+time.Minute))))
		}
	}
}
