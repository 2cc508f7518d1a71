package main

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"time"
)

// organizations and their shares of the rows.
var organizations = []struct {
	id         string
	runsPerDay float64 // on a weekday in the middle of the history
	agents     int
	people     int
}{
	{"acme", 245, 40, 400},
	{"globex", 40, 10, 70},
	{"initech", 26, 8, 40},
	{"umbrella", 14, 5, 20},
}

// A person starts runs and takes part in them.
type person struct {
	identifier string
	names      []string // as captured, not always the same
	internal   bool
	offset     time.Duration // of the person's office hours
}

// An agent and the days, counted from the beginning of the world, on which it exists.
type agent struct {
	id             string
	versions       []agentRecord
	firstDay, gone int
}

// A world is what stays the same in an organization over all days.
type world struct {
	id         string
	runsPerDay float64
	agents     []agent
	people     []person
	automated  []string // identifiers; empty for an initiator without one
}

var (
	givenNames = strings.Fields(
		"Ada Bao Chidi Dara Elif Farah Goran Hana Ines Jonas Kavi Lena Mateo Nia Omar Petra Quinn Rosa Sven Tara Uma Vera " +
			"Wren Xenia Yusuf Zoë",
	)
	familyNames = strings.Fields(
		"Adler Brandt Castell Dahl Estrada Fink Garvey Holm Ivers Jansen Kerr Lindqvist Moreau Novak Okoye Park Quist " +
			"Rahman Sato Tran Ueda Vance Weiss Yilmaz Zeller",
	)
	jobs = strings.Fields(
		"Support Sales Billing Onboarding Research Scheduling Returns Claims Hiring Security Travel Outreach Survey " +
			"Inventory Quality Payroll",
	)
	traits      = strings.Fields("triage desk scout planner writer caller reviewer watcher guide clerk")
	automations = []string{
		"",
		"",
		"schedule:nightly-report",
		"schedule:hourly-sync",
		"webhook:crm",
		"webhook:ticketing",
		"integration:warehouse",
		"schedule:weekly-digest",
	}
	offsets = []time.Duration{
		-8 * time.Hour,
		-5 * time.Hour,
		0,
		time.Hour,
		time.Hour,
		5*time.Hour + 30*time.Minute,
		9 * time.Hour,
	}
)

// randomFor gives random numbers that depend on the seed, an organization and a number only.
func randomFor(seed uint64, organization string, number uint64) *rand.Rand {
	hash := fnv.New64a()
	hash.Write([]byte(organization))
	return rand.New(rand.NewPCG(seed^hash.Sum64(), number))
}

// worldDay is the number that draws an organization's world; days count from 1970.
const worldDay = 0

func newWorld(seed uint64, id string, runsPerDay float64, agents, people int) world {
	r := randomFor(seed, id, worldDay)
	w := world{id: id, runsPerDay: runsPerDay, automated: automations}
	for i := range agents {
		w.agents = append(w.agents, newAgent(r, id, i))
	}
	// The slug of an agent that is gone has been given to a new one.
	if old, taken := w.agents[agents-2].versions, &w.agents[agents-1]; len(old) > 0 {
		for i := range taken.versions {
			taken.versions[i].Slug = old[0].Slug
		}
	}
	for i := range people {
		w.people = append(w.people, newPerson(r, id, i))
	}
	return w
}

// beginning is where the sample's history may begin at the earliest; agents' versions are dated from it.
var beginning = time.Date(2020, 1, 1, 8, 0, 0, 0, time.UTC)

func newAgent(r *rand.Rand, organization string, i int) agent {
	name := jobs[i%len(jobs)] + " " + traits[(i/len(jobs)+r.IntN(3))%len(traits)]
	slug := strings.ReplaceAll(strings.ToLower(name), " ", "-")
	if i >= len(jobs) {
		slug = fmt.Sprintf("%s-%d", slug, i)
	}
	version := agentRecord{
		Record: "agent", OrganizationID: organization, AgentID: newID(r), Name: name, Slug: slug,
		UpdatedAt: instant(beginning),
	}
	a := agent{id: version.AgentID, versions: []agentRecord{version}, gone: 1 << 30}
	if i%9 == 8 {
		a.versions[0].Slug = "" // slugs are optional
	}
	if i%5 == 1 { // renamed, the slug with the name
		version.Name = name + " " + []string{"II", "Plus", "(EU)"}[r.IntN(3)]
		version.UpdatedAt = instant(beginning.AddDate(1+r.IntN(3), r.IntN(12), 0))
		a.versions = append(a.versions, version)
	}
	return a
}

func newPerson(r *rand.Rand, organization string, i int) person {
	given, family := givenNames[r.IntN(len(givenNames))], familyNames[r.IntN(len(familyNames))]
	p := person{
		names:    []string{given + " " + family},
		internal: r.IntN(10) < 7,
		offset:   offsets[r.IntN(len(offsets))],
	}
	if r.IntN(4) == 0 {
		p.names = append(p.names, given+" "+family[:1]+".", "")
	}
	switch {
	case r.IntN(8) == 0:
		p.internal = false
		p.identifier = fmt.Sprintf("+1555010%04d", i)
	case p.internal:
		p.identifier = fmt.Sprintf("%s.%s%d@%s.example.com", strings.ToLower(given), strings.ToLower(family), i, organization)
	default:
		p.identifier = fmt.Sprintf("%s%d@%s", strings.ToLower(given), i,
			[]string{"example.org", "example.net", "mail.example.org"}[r.IntN(3)])
	}
	return p
}
