package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runlens/runlens/cmd/internal/harness"
	"github.com/runlens/runlens/cmd/internal/oracle"
	"github.com/runlens/runlens/cmd/internal/process"
)

const (
	// narrowedPhases is how often records change between questions.
	narrowedPhases = 8
	// narrowedAskers send questions at once, each from keysAtOnce keys; narrowedRepeats times: the second answer is
	// cached, and the third one is from there.
	narrowedAskers, keysAtOnce, narrowedRepeats = 3, 3, 3
	// longDays is a range in which the rollup answers, with the records that there are by default.
	longDays = 330
)

// A narrowKey is a key that sees less than its organization, as the oracle has it.
type narrowKey struct {
	name  string
	flags []string // of keys create
	sees  oracle.Key
	days  int // 0 for all
}

// A narrowTrial holds what keys of one organization are answered by two servers against an oracle, which takes away the
// rows that a key does not see before it does anything else.
type narrowTrial struct {
	*soak
	stage
	refresh *process.Server // refreshes for all
	random  *rand.Rand
	keys    []narrowKey

	answers, crossings, refusals atomic.Int64
	different, unanswered        *examples
}

// proveNarrowed sends the same questions from keys that see different parts, at the same time, repeated and page by
// page, also with cursors of other keys.
func (s *soak) proveNarrowed(ctx context.Context) error {
	t := &narrowTrial{soak: s, random: rand.New(rand.NewPCG(s.Seed, 11)), different: &examples{}, unanswered: &examples{}}
	t.author = newAuthor(s.Seed, time.Now().UTC().Truncate(24*time.Hour))
	defer t.close()
	if err := t.open(ctx); err != nil {
		return err
	}
	for phase := range narrowedPhases {
		if err := t.change(ctx); err != nil {
			return err
		}
		until := int64(s.Narrowed) * int64(phase+1) / narrowedPhases
		var asking sync.WaitGroup
		for range narrowedAskers {
			a := &narrowAsker{t, &questioner{rand.New(rand.NewPCG(t.random.Uint64(), 0)), t.author}}
			asking.Go(func() {
				for t.answers.Load() < until && ctx.Err() == nil {
					a.ask(ctx)
				}
			})
		}
		asking.Wait()
		s.say("%d answers, %d different", t.answers.Load(), t.different.count())
	}
	answers := t.answers.Load()
	s.hold("answers to narrowed keys", fmt.Sprint(answers), fmt.Sprint(s.Narrowed), answers >= int64(s.Narrowed))
	s.none("answers that differ from what the key may see", t.different)
	s.none("questions that were not answered", t.unanswered)
	s.hold("cursors of other keys, refused", fmt.Sprint(t.crossings.Load()), "1 or more", t.crossings.Load() > 0)
	s.hold("questions beyond a key, refused", fmt.Sprint(t.refusals.Load()), "1 or more", t.refusals.Load() > 0)
	return ctx.Err()
}

func (t *narrowTrial) open(ctx context.Context) error {
	var err error
	if t.refresh, err = t.stage.open(ctx, t.soak); err != nil {
		return err
	}
	t.say("loads %d runs and as many attribution records", t.NarrowedRuns)
	if err := t.ingest(ctx, batch{organization: mainOrganization, agents: 100, runs: t.NarrowedRuns,
		attributions: t.NarrowedRuns}); err != nil {
		return err
	}
	for _, key := range t.drawKeys() {
		made, err := t.store.product.CreateKey(ctx, mainOrganization, key.flags...)
		if err != nil {
			return err
		}
		for _, server := range t.servers {
			server.admit(key.name, made.Key)
		}
		t.keys = append(t.keys, key)
	}
	return nil
}

// drawKeys are keys of every kind, some of which see much, some little, and one all.
func (t *narrowTrial) drawKeys() []narrowKey {
	c := t.author.of(mainOrganization)
	agent := func() string { return c.agents[t.random.IntN(len(c.agents))].String() }
	person := func() string { return c.people[1+t.random.IntN(len(c.people)-1)] }
	keys := []narrowKey{
		{sees: oracle.Key{}},
		{sees: oracle.Key{Agents: []string{agent()}}}, {sees: oracle.Key{Agents: []string{agent(), agent(), agent()}}},
		{sees: oracle.Key{Agents: []string{t.author.id().String()}}},
		{sees: oracle.Key{People: []string{person()}}}, {sees: oracle.Key{People: []string{person(), person(), person()}}},
		{sees: oracle.Key{Domains: drawnDomains[:1]}}, {sees: oracle.Key{Domains: drawnDomains[1:]}},
		{sees: oracle.Key{Agents: []string{agent(), agent()}, Domains: drawnDomains[:1]}, days: 200},
		{sees: oracle.Key{Agents: []string{agent(), agent()}, People: []string{person(), person()}}},
		{sees: oracle.Key{MinPeople: 5}}, {sees: oracle.Key{MinPeople: 5, Agents: []string{agent()}}},
		{sees: oracle.Key{MinPeople: 20, Domains: drawnDomains[2:]}, days: 300}, {days: 90},
	}
	for i := range keys {
		keys[i].name, keys[i].flags = fmt.Sprint("key-", i), keys[i].asFlags()
	}
	return keys
}

func (k narrowKey) asFlags() (flags []string) {
	for flag, values := range map[string][]string{"--agent": k.sees.Agents, "--person": k.sees.People,
		"--domain": k.sees.Domains} {
		for _, value := range values {
			flags = append(flags, flag, value)
		}
	}
	for flag, n := range map[string]int{"--days": k.days, "--min-people": k.sees.MinPeople} {
		if n > 0 {
			flags = append(flags, flag, fmt.Sprint(n))
		}
	}
	return flags
}

// change stores some records, which no question sees half of.
func (t *narrowTrial) change(ctx context.Context) error {
	return t.ingest(ctx, batch{mainOrganization, 2, 200, 500, 200, 300, 10})
}

func (t *narrowTrial) close() {
	if t.refresh != nil {
		t.refresh.Stop()
	}
	t.stage.close()
}

// patiently sends a question again while the server has too many.
func patiently(ctx context.Context, c *client, q question) (answer, error) {
	for {
		a, err := c.query(ctx, q.body())
		if err != nil || a.status != 429 || !harness.Pause(ctx, refusedPause) {
			return a, err
		}
	}
}
