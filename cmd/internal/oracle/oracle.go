// Package oracle answers queries from records in memory, to compare the answers of a server with. It is written from
// the specification and shares no code with the product: a record is a struct in a slice, the slices are indexed by
// UTC day, and a query walks over the days of its range. Its tests compare it with the naive evaluator of package
// olaptest, which is too slow for hundreds of thousands of records.
package oracle

import (
	"slices"
	"time"

	"github.com/google/uuid"
)

// An Agent is one version of an agent's record (contract 3).
type Agent struct {
	ID        uuid.UUID
	Name      string
	Slug      *string
	DeletedAt *time.Time
	UpdatedAt time.Time
}

// A Run is one version of a run's record (contract 3). Its texts are as they are stored, normalized.
type Run struct {
	ID               uuid.UUID
	AgentID          uuid.UUID
	Kind, Status     string
	Identifier, Name *string
	Type             *string
	CreatedAt        time.Time
	UpdatedAt        time.Time
}

// An Attribution is an attribution record (contract 3). Its texts are as they are stored, normalized.
type Attribution struct {
	ID, RunID, AgentID               uuid.UUID
	Identifier                       string
	Name                             *string
	Activity, InitiationType, Source string
	OccurredAt                       time.Time
}

// An Oracle has the records of organizations. Answer may be called concurrently, but not during changes.
type Oracle struct{ organizations map[string]*organization }

// New returns an Oracle without records.
func New() *Oracle { return &Oracle{map[string]*organization{}} }

func (o *Oracle) of(name string) *organization {
	if o.organizations[name] == nil {
		o.organizations[name] = &organization{
			texts: newTexts(), agents: map[uuid.UUID]Agent{}, runOf: map[uuid.UUID]int32{}, runDays: map[int64][]int32{},
			attributionOf: map[uuid.UUID]int32{}, attributionDays: map[int64][]int32{},
		}
	}
	return o.organizations[name]
}

// An organization has its records in slices, whose places other records name.
type organization struct {
	texts  *texts
	agents map[uuid.UUID]Agent

	runs    []run
	runOf   map[uuid.UUID]int32
	runDays map[int64][]int32 // by the UTC day of created_at

	attributions    []attribution
	attributionOf   map[uuid.UUID]int32
	attributionDays map[int64][]int32
}

// A run is the newest version of a run. One that only attribution records name is not known.
type run struct {
	known                   bool
	counts                  bool // its kind is agent
	status                  string
	agent, identifier, name int32 // texts
	initiatorType           int32 // text of the type
	created, updated        int64 // Unix milliseconds
}

type attribution struct {
	gone                            bool
	run                             int32 // place
	agent, identifier, domain, name int32 // texts
	activity, initiation, source    int32
	occurred                        int64 // Unix milliseconds
}

// PutAgent takes a version of an agent.
func (o *Oracle) PutAgent(organization string, a Agent) {
	org := o.of(organization)
	if old, known := org.agents[a.ID]; !known || a.UpdatedAt.After(old.UpdatedAt) {
		org.agents[a.ID] = a
	}
}

// PutRun takes a version of a run. The newest one counts, under its own clock.
func (o *Oracle) PutRun(organization string, r Run) {
	org := o.of(organization)
	place := org.place(r.ID)
	old := &org.runs[place]
	version := r.UpdatedAt.UnixMilli()
	if old.known && version <= old.updated {
		return
	}
	if day := dayOf(r.CreatedAt.UnixMilli()); !old.known || dayOf(old.created) != day {
		org.leaveDay(place)
		org.runDays[day] = append(org.runDays[day], place)
	}
	*old = run{
		known: true, counts: r.Kind == "agent", status: r.Status, agent: org.texts.of(r.AgentID.String()),
		identifier: org.texts.optional(r.Identifier), name: org.texts.optional(r.Name),
		initiatorType: org.texts.optional(r.Type),
		created:       r.CreatedAt.UnixMilli(), updated: version,
	}
}

// place is where a run is or will be.
func (org *organization) place(id uuid.UUID) int32 {
	place, known := org.runOf[id]
	if !known {
		place = int32(len(org.runs))
		org.runs = append(org.runs, run{})
		org.runOf[id] = place
	}
	return place
}

// PutAttribution takes an attribution record. The first one of an id counts.
func (o *Oracle) PutAttribution(organization string, a Attribution) {
	org := o.of(organization)
	if place, known := org.attributionOf[a.ID]; known && !org.attributions[place].gone {
		return
	}
	place := int32(len(org.attributions))
	org.attributionOf[a.ID] = place
	org.attributions = append(org.attributions, attribution{
		run: org.place(a.RunID), agent: org.texts.of(a.AgentID.String()), identifier: org.texts.of(a.Identifier),
		domain: org.texts.domain(a.Identifier), name: org.texts.optional(a.Name), activity: org.texts.of(a.Activity),
		initiation: org.texts.of(a.InitiationType), source: org.texts.of(a.Source), occurred: a.OccurredAt.UnixMilli(),
	})
	day := dayOf(a.OccurredAt.UnixMilli())
	org.attributionDays[day] = append(org.attributionDays[day], place)
}

// PurgePerson deletes the attribution records of a person, and takes it out of the runs that it started.
func (o *Oracle) PurgePerson(organization, identifier string) {
	org := o.of(organization)
	person := org.texts.of(identifier)
	for i := range org.attributions {
		if org.attributions[i].identifier == person {
			org.attributions[i].gone = true
		}
	}
	for i := range org.runs {
		if org.runs[i].known && org.runs[i].identifier == person {
			org.runs[i].identifier, org.runs[i].name = null, null
		}
	}
}

// PurgeRuns deletes runs. Attribution records of them stay.
func (o *Oracle) PurgeRuns(organization string, ids []uuid.UUID) {
	org := o.of(organization)
	for _, id := range ids {
		place := org.place(id)
		org.leaveDay(place)
		org.runs[place] = run{}
	}
}

// leaveDay takes a run that is known out of its day.
func (org *organization) leaveDay(place int32) {
	if r := org.runs[place]; r.known {
		day := dayOf(r.created)
		org.runDays[day] = slices.DeleteFunc(org.runDays[day], func(other int32) bool { return other == place })
	}
}

// PurgeOrganization deletes everything of an organization.
func (o *Oracle) PurgeOrganization(organization string) { delete(o.organizations, organization) }

const dayMillis = 24 * 60 * 60 * 1000

// dayOf numbers UTC days, also before 1970.
func dayOf(millis int64) int64 {
	day := millis / dayMillis
	if millis%dayMillis < 0 {
		day--
	}
	return day
}
