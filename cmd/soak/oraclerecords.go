package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/runlens/runlens/cmd/internal/oracle"
)

// The organizations of the part oracle. Only the main one is above the number of records from which on the rollup is
// used.
const mainOrganization = "main"

var smallOrganizations = []string{"small-1", "small-2", "small-3"}

const (
	mainPeople, smallPeople = 2000, 60
	mainAgents, smallAgents = 40, 6
	historyDays             = 380 // up to today
	instantMillis           = "2006-01-02T15:04:05.000Z"
)

var (
	drawnStatuses = []string{"COMPLETED", "COMPLETED", "COMPLETED", "COMPLETED", "FAILED", "FAILED", "CANCELLED",
		"RUNNING", "PENDING", "PAUSED", "SLEEPING", "WAITING_FOR_SLOT", "CANCELLING", "AWAITING_REPLY", "PAUSING"}
	drawnKinds       = []string{"sub_agent", "browser", "phone", "inbound_phone", "platform"} // besides agent
	drawnTypes       = []string{"internal", "external", "automated", "unknown", ""}
	drawnActivities  = []string{"initiated", "associated", "interacted", "interacted"}
	drawnInitiations = []string{"human", "automated", "unknown"}
	drawnSources     = []string{"web", "api", "slack", "email"}
	drawnDomains     = []string{"example.com", "example.org", "mail.example.net"}
)

// An author writes records to files and to the oracle. It keeps runs, of which newer versions follow.
type author struct {
	random *rand.Rand
	truth  *oracle.Oracle
	today  time.Time
	clock  time.Time // of versions; each is later than the one before
	known  map[string]*chronicle
}

// A chronicle is what an author knows of an organization.
type chronicle struct {
	name    string
	people  []string // "" is nobody
	agents  []uuid.UUID
	runs    []oracle.Run         // newest versions; a ring of the last ones that may change
	records []oracle.Attribution // some, to be sent again
	names   []string             // those of agents and people; empty for harmless ones
}

// mostRemembered bounds the runs of an organization that may change, and so the memory.
const mostRemembered = 100_000

func newAuthor(seed uint64, today time.Time) *author {
	return &author{random: rand.New(rand.NewPCG(seed, 1)), truth: oracle.New(), today: today, clock: today,
		known: map[string]*chronicle{}}
}

// of is the chronicle of an organization, which begins again after a purge.
func (a *author) of(organization string) *chronicle {
	if c := a.known[organization]; c != nil {
		return c
	}
	people, agents := smallPeople, smallAgents
	if organization == mainOrganization {
		people, agents = mainPeople, mainAgents
	}
	c := &chronicle{name: organization, people: []string{""}}
	for n := range people {
		person := fmt.Sprintf("p%d@%s", n, drawnDomains[n%len(drawnDomains)])
		if n%9 == 0 {
			person = fmt.Sprintf("+1555%06d", n)
		}
		c.people = append(c.people, person)
	}
	for range agents {
		c.agents = append(c.agents, a.id())
	}
	a.known[organization] = c
	return c
}

func (a *author) id() uuid.UUID {
	var id uuid.UUID
	for i := range 2 {
		n := a.random.Uint64()
		for j := range 8 {
			id[8*i+j] = byte(n >> (8 * j))
		}
	}
	return id
}

func one[T any](a *author, of []T) T { return of[a.random.IntN(len(of))] }

func (a *author) instant() time.Time {
	return a.today.Add(-time.Duration(a.random.Int64N(historyDays * 24 * int64(time.Hour)))).Truncate(time.Millisecond)
}

// version is later than all versions before.
func (a *author) version() time.Time {
	a.clock = a.clock.Add(time.Millisecond)
	return a.clock
}

// A batch is how many records of each sort of an organization are sent. Contradictions are records that were sent
// before, with what never changes changed.
type batch struct {
	organization                                                 string
	agents, runs, changes, repeats, attributions, contradictions int
}

// write makes a file with random records and gives them to the oracle.
func (a *author) write(file string, batches ...batch) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := a.print(f, batches...); err != nil {
		return err
	}
	return f.Close()
}

// print writes random records and gives them to the oracle.
func (a *author) print(to io.Writer, batches ...batch) error {
	out := bufio.NewWriterSize(to, 1<<20)
	for _, b := range batches {
		a.writeBatch(out, b)
	}
	return out.Flush()
}

// writeBatch writes records. An error of out stays there.
func (a *author) writeBatch(out *bufio.Writer, b batch) {
	c := a.of(b.organization)
	for range b.agents {
		a.writeAgent(out, c)
	}
	for range b.runs {
		r := oracle.Run{ID: a.id(), AgentID: one(a, c.agents), Kind: a.kind(), CreatedAt: a.instant()}
		a.draw(c, &r)
		a.writeRun(out, c, r)
		if len(c.runs) < mostRemembered {
			c.runs = append(c.runs, r)
		} else {
			c.runs[a.random.IntN(len(c.runs))] = r
		}
	}
	for range min(b.changes, len(c.runs)) {
		r := &c.runs[a.random.IntN(len(c.runs))]
		if a.random.IntN(3) > 0 {
			r.Status, r.UpdatedAt = one(a, drawnStatuses), a.version()
		} else {
			a.draw(c, r)
		}
		a.writeRun(out, c, *r)
	}
	for range min(b.repeats, len(c.runs), len(c.records)) {
		a.writeRun(out, c, one(a, c.runs))
		a.writeAttribution(out, c, one(a, c.records))
	}
	for range min(b.contradictions, len(c.runs), len(c.records)) {
		a.contradict(out, c)
	}
	for range b.attributions {
		at := oracle.Attribution{ID: a.id(), RunID: a.id(), AgentID: one(a, c.agents), Identifier: one(a, c.people[1:]),
			Activity: one(a, drawnActivities), InitiationType: one(a, drawnInitiations), Source: one(a, drawnSources),
			OccurredAt: a.instant()}
		at.Name = a.name(c)
		if len(c.runs) > 0 && a.random.IntN(20) > 0 {
			r := one(a, c.runs)
			at.RunID, at.AgentID = r.ID, r.AgentID
			if a.random.IntN(10) > 0 { // near its run, mostly
				at.OccurredAt = r.CreatedAt.Add(time.Duration(a.random.Int64N(int64(72 * time.Hour)))).Truncate(time.Millisecond)
			}
		}
		a.writeAttribution(out, c, at)
		if len(c.records) < mostRemembered/10 {
			c.records = append(c.records, at)
		}
	}
}

// draw draws what may differ between the versions of a run.
func (a *author) draw(c *chronicle, r *oracle.Run) {
	r.Status, r.UpdatedAt, r.Identifier, r.Name, r.Type = one(a, drawnStatuses), a.version(), nil, nil, nil
	if person := one(a, c.people); person != "" {
		r.Identifier, r.Name = &person, a.name(c)
	}
	if kind := one(a, drawnTypes); kind != "" {
		r.Type = &kind
	}
}

// kind is agent in 19 of 20 draws: only those runs count, also where they decide whether an organization is a large
// one.
func (a *author) kind() string {
	if a.random.IntN(20) > 0 {
		return "agent"
	}
	return one(a, drawnKinds)
}

func (a *author) name(c *chronicle) *string {
	if a.random.IntN(4) == 0 {
		return nil
	}
	name := "Name " + strconv.Itoa(a.random.IntN(50))
	if len(c.names) > 0 {
		name = one(a, c.names)
	}
	return &name
}

func (a *author) writeAgent(out *bufio.Writer, c *chronicle) {
	place := a.random.IntN(len(c.agents))
	agent := oracle.Agent{ID: c.agents[place], Name: fmt.Sprintf("Agent %d", a.random.IntN(1000)), UpdatedAt: a.version()}
	if len(c.names) > 0 {
		agent.Name = one(a, c.names)
	}
	deleted := ""
	if slug := fmt.Sprintf("agent-%d", place); a.random.IntN(3) > 0 {
		agent.Slug = &slug
		if a.random.IntN(6) == 0 {
			agent.DeletedAt = &agent.UpdatedAt
			deleted = agent.UpdatedAt.UTC().Format(instantMillis)
		}
	}
	a.truth.PutAgent(c.name, agent)
	fmt.Fprintf(out,
		`{"record":"agent","organization_id":%q,"agent_id":%q,"name":%s,"slug":%s,"deleted_at":%s,"updated_at":%q}`+"\n",
		c.name, agent.ID, nullable(&agent.Name), nullable(agent.Slug), quotedOrNull(deleted),
		agent.UpdatedAt.UTC().Format(instantMillis))
}

func (a *author) writeRun(out *bufio.Writer, c *chronicle, r oracle.Run) {
	a.truth.PutRun(c.name, r)
	fmt.Fprintf(out,
		`{"record":"run","organization_id":%q,"run_id":%q,"agent_id":%q,"kind":%q,"status":%q,"initiator_identifier":%s,`+
			`"initiator_name":%s,"initiator_type":%s,"created_at":%q,"updated_at":%q}`+"\n", c.name, r.ID, r.AgentID, r.Kind,
		r.Status,
		nullable(r.Identifier), nullable(r.Name), nullable(r.Type), r.CreatedAt.UTC().Format(instantMillis),
		r.UpdatedAt.UTC().Format(instantMillis))
}

func (a *author) writeAttribution(out *bufio.Writer, c *chronicle, at oracle.Attribution) {
	a.truth.PutAttribution(c.name, at)
	fmt.Fprintf(out,
		`{"record":"attribution","organization_id":%q,"attribution_id":%q,"run_id":%q,"agent_id":%q,"user_identifier":%q,`+
			`"user_name":%s,"activity_type":%q,"run_initiation_type":%q,"source":%q,"occurred_at":%q}`+"\n", c.name, at.ID,
		at.RunID, at.AgentID,
		at.Identifier, nullable(at.Name), at.Activity, at.InitiationType, at.Source,
		at.OccurredAt.UTC().Format(instantMillis))
}

func nullable(text *string) string {
	if text == nil {
		return "null"
	}
	quoted, err := json.Marshal(*text)
	if err != nil {
		panic(err) // no text can fail
	}
	return string(quoted)
}

func quotedOrNull(text string) string {
	if text == "" {
		return "null"
	}
	return strconv.Quote(text)
}
