package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/runlens/runlens/cmd/internal/harness"
	"github.com/runlens/runlens/cmd/internal/process"
)

const (
	// tenantEvery is how often an honest tenant sends a question, unless the one before takes longer.
	tenantEvery = 250 * time.Millisecond
	// tenantPatience is the time within which 99 of 100 honest questions are answered.
	tenantPatience = 4 * time.Second
	// leastAnswered is the least percentage of honest requests that get their answer and not 429: refusals are quick.
	leastAnswered = 90
	// mostLogged is how many bytes a second the server may log on average.
	mostLogged = 128 << 10
	// siegeFiles is how many files the server may open: the hard limit of many systems.
	siegeFiles = 4096
	// calmShare is the part of the time, as a divisor, that the tenants have to themselves before.
	calmShare = 20
	// siegeKillEvery is how often the engine is killed, unless the siege is shorter.
	siegeKillEvery = 5 * time.Minute

	siegeMainRuns, siegeSmallRuns, siegeAttackerRuns = 20_000, 3000, 160_000
)

// The organizations of attackers with legal keys. Together they may run as many queries at once as the server allows.
var attackerOrganizations = []string{"attacker-1", "attacker-2", "attacker-3", "attacker-4"}

// A siege is everything that goes on at once in the part siege.
type siege struct {
	*soak
	target  *target
	author  *author // of the honest tenants' records
	others  *author // of the attackers'
	inquiry inquiry // of the honest tenants
	crashes crashes
	kills   examples // that killed nothing
	engines engineWatch

	tenants, attackers []*client
	attacks            counts   // by kind, and what came of each
	wrong              examples // answers to attackers outside the contract
	leaving            examples // servers that could not join
	escapes            examples // hostile names that reached a terminal as they are
	stranger           stranger
}

// proveSiege attacks in every way at once, beside four honest tenants. Those get right answers or 429, in time; the
// engine ends only where it is killed, memory and log stay within their bounds, and another user reads nothing.
func (s *soak) proveSiege(ctx context.Context) error {
	if err := enoughFiles(); err != nil {
		return err
	}
	t, err := s.startWithin(ctx, siegeFiles)
	if err != nil {
		return err
	}
	defer t.close()
	g := &siege{soak: s, target: t}
	if err := g.open(ctx); err != nil {
		return err
	}
	logged := fileSize(t.server.LogFile())
	began := time.Now()
	during, stop := context.WithCancel(ctx)
	go func() {
		defer stop() // without a server there is nothing to attack
		select {
		case <-t.server.Ended():
		case <-during.Done():
		}
	}()
	watched := g.engines.watch(during, t.product)
	progress := func() string {
		return fmt.Sprintf("%s; %d of %d engine ends unexpected; memory %s", g.inquiry.outcomes, g.unexpected(),
			g.engines.ends(), size(t.memory.now()))
	}
	s.runLoads(during, s.SiegeFor/calmShare, g.tenantLoads(), progress)
	s.see("50th / 99th percentile of tenants without attacks", "%s", g.percentiles())
	g.inquiry.took = latencies{}
	s.runLoads(during, s.SiegeFor, append(g.tenantLoads(), g.attackLoads()...), progress)
	stop()
	<-watched
	peak, _ := process.PeakResident(t.server.PID())
	g.report(max(peak, t.memory.peak(began)), float64(fileSize(t.server.LogFile())-logged)/time.Since(began).Seconds())
	return t.alive()
}

// enoughFiles returns an error where this process may not open as many connections as the attacks need.
func enoughFiles() error {
	const needed = 8192
	var limit syscall.Rlimit // Go has raised it as far as the system lets it
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	if limit.Cur < needed {
		return fmt.Errorf("the attacks need %d open files, and this process may open %d (ulimit -n)", needed, limit.Cur)
	}
	return nil
}

// open stores the records of tenants and of the attackers that are needed, and makes their keys.
func (g *siege) open(ctx context.Context) error {
	today := time.Now().UTC().Truncate(24 * time.Hour)
	g.author, g.others = newAuthor(g.Seed, today), newAuthor(g.Seed+1, today)
	honest := append([]string{mainOrganization}, smallOrganizations...)
	g.author.of(hostileOrganization).names = hostileNames
	var batches []batch
	for _, organization := range honest {
		batches = append(batches,
			batch{organization: organization, agents: 60, runs: siegeSmallRuns, attributions: siegeSmallRuns})
	}
	batches[0] = batch{organization: mainOrganization, agents: 200, runs: siegeMainRuns, attributions: siegeMainRuns}
	if err := g.store(ctx, g.author, batches...); err != nil {
		return err
	}
	if g.wantsAttack("aborted", "abandoned", "caches", "names") {
		if err := g.openAttackers(ctx); err != nil {
			return err
		}
	}
	for i, organization := range honest {
		c, err := g.target.client(ctx, organization)
		if err != nil {
			return err
		}
		if i%2 == 1 {
			c = c.hasty() // half of them need a place among the connections again and again
		}
		g.tenants = append(g.tenants, c)
	}
	g.inquiry = inquiry{truth: g.author, verdicts: &verdicts{of: map[string]verdict{}}, refused: &examples{},
		outcomes: &counts{}, excused: func(a answer) bool { return a.status == 429 }}
	return g.openToStrangers()
}

// openAttackers stores the records of the attackers that have keys.
func (g *siege) openAttackers(ctx context.Context) error {
	for _, organization := range attackerOrganizations {
		if err := g.store(ctx, g.others, batch{organization: organization, agents: 40, runs: siegeAttackerRuns,
			attributions: siegeAttackerRuns}); err != nil {
			return err
		}
		g.others.truth.PurgeOrganization(organization) // nobody compares it, and it takes memory
		c, err := g.target.client(ctx, organization)
		if err != nil {
			return err
		}
		g.attackers = append(g.attackers, c)
	}
	return nil
}

func (g *siege) store(ctx context.Context, a *author, batches ...batch) error {
	g.say("stores %d organizations from %s on", len(batches), batches[0].organization)
	file := filepath.Join(g.target.dir, "records.ndjson")
	defer os.Remove(file)
	if err := a.write(file, batches...); err != nil {
		return err
	}
	_, err := g.target.ingest(ctx, file)
	return err
}

// A siegeAttack is one of the attacks.
type siegeAttack struct {
	name string
	run  func(g *siege, ctx, end context.Context)
}

var siegeAttacks = []siegeAttack{
	{"engine", (*siege).halfRequestsToEngine}, {"statements", (*siege).abortStatements},
	{"api", (*siege).halfRequestsToAPI}, {"aborted", (*siege).abortQuestions}, {"abandoned", (*siege).abandonQuestions},
	{"caches", (*siege).fillCaches}, {"starving", (*siege).starve}, {"admin", (*siege).holdAdmin},
	{"log", (*siege).floodLog}, {"names", (*siege).sendHostile}, {"terminals", (*siege).showHostileNames},
	{"leaving", (*siege).leave}, {"stranger", (*siege).trySpying}, {"kills", (*siege).killEngine},
}

func attackNames() string {
	names := make([]string, len(siegeAttacks))
	for i, a := range siegeAttacks {
		names[i] = a.name
	}
	return strings.Join(names, ", ")
}

// wantsAttack reports whether one of some attacks is configured.
func (c command) wantsAttack(names ...string) bool {
	configured := func(name string) bool { return slices.Contains(c.SiegeOf, name) }
	return len(c.SiegeOf) == 0 || slices.ContainsFunc(names, configured)
}

// tenantLoads are the honest tenants.
func (g *siege) tenantLoads() (all []load) {
	for i, organization := range append([]string{mainOrganization}, smallOrganizations...) {
		q := &questioner{random: rand.New(rand.NewPCG(g.Seed, uint64(100+i))), author: g.author}
		all = append(all, func(ctx, end context.Context) { g.ask(ctx, end, g.tenants[i], organization, q) })
	}
	return all
}

// attackLoads are the configured attacks.
func (g *siege) attackLoads() (all []load) {
	for _, a := range siegeAttacks {
		if g.wantsAttack(a.name) {
			all = append(all, func(ctx, end context.Context) { a.run(g, ctx, end) })
		}
	}
	return all
}

func (g *siege) killEngine(_, end context.Context) {
	g.crashes.killEvery(end, min(g.SiegeFor, siegeKillEvery), g.target.product, &g.kills)
}

// ask is an honest tenant.
func (g *siege) ask(ctx, end context.Context, c *client, organization string, q *questioner) {
	defer c.rest()
	for next := time.Now(); end.Err() == nil; {
		g.inquiry.run(ctx, c, organization, q.draw(wantAny, organization, q.random.IntN(2) == 0))
		if next = next.Add(tenantEvery); next.Before(time.Now()) {
			next = time.Now()
		}
		harness.Pause(end, time.Until(next))
	}
}

// unexpected is how many engines ended that nobody killed.
func (g *siege) unexpected() int {
	return g.engines.ends() - (g.crashes.count() - g.kills.count())
}

func (g *siege) percentiles() string {
	return fmt.Sprintf("%s / %s", g.inquiry.took.quantile(0.5), g.inquiry.took.quantile(0.99))
}

// report adds what was seen, with the most memory of the server and how many bytes it logged a second.
func (g *siege) report(peak int64, logged float64) {
	took, outcomes := &g.inquiry.took, g.inquiry.outcomes
	slow, answered, sent := took.quantile(0.99), outcomes.get("200"), outcomes.sum()
	different := &examples{}
	for _, v := range g.inquiry.verdicts.of {
		if v.different != "" {
			different.add("%s", v.different)
		}
	}
	g.see("answers to tenants", "%s", outcomes)
	g.see("50th / 99th percentile of tenants", "%s; slowest %s", g.percentiles(), took.quantile(1))
	g.none("tenants' questions without an answer, or with another one than 200 and 429", g.inquiry.refused)
	g.none("tenants' answers that differ from the oracle's", different)
	g.hold("tenants' requests that were answered with 200", fmt.Sprintf("%d of %d", answered, sent),
		fmt.Sprintf("at least %d %%", leastAnswered), answered > 0 && 100*answered >= leastAnswered*sent)
	g.hold("99th percentile of tenants", slow.String(), "below "+tenantPatience.String(),
		slow > 0 && slow < tenantPatience)
	g.see("engines that ended", "%d; %d were killed", g.engines.ends(), g.crashes.count()-g.kills.count())
	g.hold("engines that ended without being killed", fmt.Sprint(g.unexpected()), "0", g.unexpected() == 0)
	g.none("engines that could not be killed", &g.kills)
	g.none("servers that could not join", &g.leaving)
	g.hold("memory of serve", size(peak), "below "+size(g.MemoryBound*mib), peak > 0 && peak < g.MemoryBound*mib)
	g.hold("logged bytes a second", fmt.Sprintf("%.0f", logged), fmt.Sprintf("at most %d", mostLogged),
		logged <= mostLogged)
	g.see("attacks", "%s", &g.attacks)
	if g.wantsAttack("caches") {
		longest, fewest := g.attacks.get(longestQuestion+": 200"), int(g.SiegeFor/longestEvery*4/5)
		g.hold("longest questions that were answered", fmt.Sprint(longest), fmt.Sprintf("at least %d", fewest),
			longest >= fewest)
	}
	g.none("answers to attackers outside the contract", &g.wrong)
	g.none("lines of the log with control characters", readLog(g.target.server.LogFile()))
	g.none("hostile names that reached a terminal as they are", &g.escapes)
	if g.wantsAttack("stranger") {
		g.stranger.report(g)
	}
}

// fileSize is 0 where there is no such file.
func fileSize(name string) int64 {
	info, err := os.Stat(name)
	if err != nil {
		return 0
	}
	return info.Size()
}
