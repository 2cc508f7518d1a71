package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/runlens/runlens/cmd/internal/harness"
)

// abortQuestions sends questions with legal keys and closes the connection while they are worked on.
func (g *siege) abortQuestions(ctx, end context.Context) {
	q := &questioner{random: rand.New(rand.NewPCG(g.Seed, 201)), author: g.others}
	for n := 0; harness.Pause(end, abortEvery); n++ {
		organization := attackerOrganizations[n%len(attackerOrganizations)]
		c := g.attackers[n%len(g.attackers)].hasty()
		g.goAway(ctx, c, "aborted questions", q.draw(wantAny, organization, false).body(),
			time.Duration(q.random.Int64N(int64(abortedWithin))))
	}
}

// goAway sends a question and closes its connection after a time.
func (g *siege) goAway(ctx context.Context, c *client, kind string, body []byte, after time.Duration) {
	short, cancel := context.WithTimeout(ctx, after)
	defer cancel()
	a, err := c.query(short, body)
	switch {
	case err == nil:
		g.attacks.add(kind + ": " + a.outcome())
		g.judge(kind, a)
	case errors.Is(err, context.DeadlineExceeded):
		g.attacks.add(kind)
	default:
		g.attacks.add(kind + ": no answer")
	}
}

// judge keeps an answer to an attacker with a legal key that has no business being there.
func (g *siege) judge(kind string, a answer) {
	if breach := a.breach(); breach != "" {
		g.wrong.add("%s: %s", kind, breach)
	} else if a.status != http.StatusOK && a.status != http.StatusTooManyRequests {
		g.wrong.add("%s: %s", kind, a.outcome())
	}
}

const (
	abandonEvery = time.Minute
	// abandoned is how many slow questions are left at once: as many as the server runs.
	abandoned      = 16
	abandonedAfter = time.Second
)

// abandonQuestions sends slow questions, whose clients then go away, each minute.
func (g *siege) abandonQuestions(ctx, end context.Context) {
	for n, wait := 0, abandonEvery/6; harness.Pause(end, wait); wait = abandonEvery {
		var leaving sync.WaitGroup
		for range abandoned {
			n++
			c, body := g.attackers[n%len(g.attackers)].hasty(), g.slowQuestion(n).body()
			leaving.Go(func() { g.goAway(ctx, c, "abandoned questions", body, abandonedAfter) })
		}
		leaving.Wait()
	}
}

// slowQuestion is a question about everything that an attacker's organization has. No two are the same.
func (g *siege) slowQuestion(n int) question {
	end := g.others.today.AddDate(0, 0, -(n % 10))
	return question{Model: "agent_user_activity", Metrics: activityMetrics, Limit: 1 + n/10%maxLimit,
		Dimensions: []string{"user_identifier", "agent_id", "source", "activity_type", "day"},
		Order:      []orderTerm{{"attributed_run_count", "desc"}},
		Range: dateRange{end.AddDate(0, 0, 1-maxDays).Format(time.DateOnly), end.Format(time.DateOnly),
			"Asia/Kathmandu"}}
}

const (
	longestQuestion = "longest questions"
	// longestEvery is how often one of the longest legal questions is sent: 2,000 in half an hour. Of five of them four
	// have to be answered: with 1,600 every cache is full.
	longestEvery  = 900 * time.Millisecond
	longestAtOnce = 2
)

// fillCaches sends the longest legal questions, no two of which are the same. A grouped one is kept wherever questions
// are.
func (g *siege) fillCaches(ctx, end context.Context) {
	q := smallQuestion
	q.Dimensions = []string{"agent_id"}
	var filling sync.WaitGroup
	for worker := range longestAtOnce {
		filling.Go(func() {
			tick := time.NewTicker(longestAtOnce * longestEvery)
			defer tick.Stop()
			for n := worker; ; n += longestAtOnce {
				select {
				case <-end.Done():
					return
				case <-tick.C:
				}
				a, err := g.attackers[n%len(g.attackers)].query(ctx, largestBody(q, n))
				if err != nil {
					g.attacks.add(longestQuestion + ": no answer")
					continue
				}
				g.attacks.add(longestQuestion + ": " + a.outcome())
				g.judge(longestQuestion, a)
			}
		})
	}
	filling.Wait()
}

const (
	starvingConnections = 1100
	starvingHold        = 20 * time.Second
	adminConnections    = 1400
	adminHold           = time.Minute
	crowdPause          = time.Second
	adminCrowdAddress   = "127.0.0.6"
)

var starvingAddresses = []string{"127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5"}

// starve occupies connections with half requests that stall or trickle, a crowd from each address.
func (g *siege) starve(_, end context.Context) {
	attacks := bodyAttacks(g.target.server.Address, "", smallBody, starvingHold)[1:]
	var starving sync.WaitGroup
	for i, local := range starvingAddresses {
		attack := attacks[i%len(attacks)]
		starving.Go(func() {
			g.occupy(end, "starving connections, "+attack.name, g.target.server.Address, local, starvingConnections, attack)
		})
	}
	starving.Wait()
}

// holdAdmin occupies the admin address with connections that send nothing.
func (g *siege) holdAdmin(_, end context.Context) {
	address, err := g.target.server.AdminAddress()
	if err != nil {
		g.wrong.add("%v", err)
		return
	}
	g.occupy(end, "idle connections to the admin address", address, adminCrowdAddress, adminConnections,
		bodyAttack{hold: adminHold})
}

// occupy keeps a crowd at an address: those that were turned away come back.
func (g *siege) occupy(end context.Context, kind, address, local string, connections int, attack bodyAttack) {
	for ok := true; ok; ok = harness.Pause(end, crowdPause) {
		c := &crowd{address: address, size: connections, local: local}
		c.run(end, attack)
		g.attacks.merge(kind+": ", &c.outcomes)
		for _, breach := range c.breaches.first() {
			g.wrong.add("%s: %s", kind, breach)
		}
	}
}

const (
	floodEvery = 25 * time.Millisecond
	// longMethod is about the longest method that the server reads.
	longMethod = 15_800
)

// floodLog sends what could fill the log: anonymous refusals, most of them with a huge method or path.
func (g *siege) floodLog(ctx, end context.Context) {
	c := newClient(g.target.server.Address, "")
	defer c.rest()
	huge := strings.Repeat("A", longMethod)
	for n := 0; harness.Pause(end, floodEvery); n++ {
		method, path, kind := http.MethodPost, queryPath, "log flood"
		switch n % 4 {
		case 0, 2:
			method, kind = huge, "log flood, huge method"
		case 3:
			path, kind = "/"+huge[1:], "log flood, huge path"
		}
		a, err := c.send(ctx, method, path, smallBody)
		if err != nil {
			g.attacks.add(kind + ": no answer")
			continue
		}
		g.attacks.add(kind)
		g.judgeKeyless(kind, a)
	}
}

// judgeKeyless keeps an answer to an attacker without a key that is no refusal.
func (g *siege) judgeKeyless(kind string, a answer) {
	if breach := a.breach(); breach != "" {
		g.wrong.add("%s: %s", kind, breach)
	} else if !keyless(a.status) {
		g.wrong.add("%s: %s", kind, a.outcome())
	}
}
