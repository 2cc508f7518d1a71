package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

const (
	victimOrganization = "victim"
	victimAgent        = "Only the victim may read this"
	victimRuns         = 37

	attackers = 4
	victims   = 2
)

// proveSmuggling sends crafted requests through keep-alive proxies and directly, while a victim sends queries the same
// way: nobody gets an answer to another one's request.
func (s *soak) proveSmuggling(ctx context.Context) error {
	t, err := s.start(ctx)
	if err != nil {
		return err
	}
	defer t.close()
	day := time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
	file := filepath.Join(t.dir, "victim.ndjson")
	if err := writeRuns(file, victimOrganization, victimAgent, victimRuns, day); err != nil {
		return err
	}
	if _, err := t.ingest(ctx, file); err != nil {
		return err
	}
	victim, err := t.client(ctx, victimOrganization)
	if err != nil {
		return err
	}
	ways := []way{{name: "directly", dial: dialTCP(t.server.Address), direct: true, close: func() {}}}
	proxy, err := goProxy(t.server.Address)
	if err != nil {
		return err
	}
	ways = append(ways, proxy)
	nginx, err := nginxProxies(ctx, t.server.Address)
	if err != nil {
		proxy.close()
		return err
	}
	if len(nginx) == 0 {
		s.see("nginx", "not on the PATH, not tried")
	}
	ways = append(ways, nginx...)
	defer func() {
		for _, w := range ways {
			w.close()
		}
	}()
	for _, w := range ways {
		if err := s.smuggle(ctx, t, w, victim.key); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
	}
	return nil
}

// A smuggling is what was seen on one way.
type smuggling struct {
	way      way
	tries    atomic.Int64
	foreign  examples // answers to another one's request
	requests examples // bodies that were read as requests
	shapes   examples // answers that are no refusal of a request without a key
	victim   counts
	attacker counts
}

// smuggle makes all tries on one way.
func (s *soak) smuggle(ctx context.Context, t *target, w way, key string) error {
	all := attacks()
	s.say("%d tries of %d attacks: %s", s.Tries, len(all), w.name)
	g := &smuggling{way: w}
	querying, stop := context.WithCancel(ctx)
	defer stop()
	var clients, tries sync.WaitGroup
	for range victims {
		clients.Go(func() { g.queryAsVictim(ctx, querying, key) })
	}
	for range attackers {
		tries.Go(func() {
			for n := g.tries.Add(1); n <= int64(s.Tries) && ctx.Err() == nil && t.alive() == nil; n = g.tries.Add(1) {
				g.try(ctx, all[int(n-1)%len(all)], fmt.Sprint(n))
			}
		})
	}
	tries.Wait()
	stop()
	clients.Wait()
	named := func(what string) string { return w.name + ": " + what }
	s.see(named("tries"), "%d", min(g.tries.Load()-attackers, int64(s.Tries)))
	s.see(named("the attacker got"), "%s", &g.attacker)
	s.see(named("the victim got"), "%s", &g.victim)
	s.none(named("foreign answers"), &g.foreign)
	if w.direct {
		s.none(named("bodies read as requests"), &g.requests)
	}
	s.none(named("answers to the attacker that are no refusals"), &g.shapes)
	queried, answered := g.victim.sum(), g.victim.get("its own rows")
	s.hold(named("the victim's questions answered"), fmt.Sprintf("%d of %d", answered, queried), "at least half of them",
		queried > 0 && 2*answered >= queried)
	return t.alive()
}

// queryAsVictim requests the victim's rows again and again, over the way's connections.
func (g *smuggling) queryAsVictim(ctx, querying context.Context, key string) {
	c := newClient("proxy", key)
	c.http.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return g.way.dial(ctx)
	}}
	defer c.rest()
	q := question{Model: "agent_runs", Metrics: []string{"run_count"}, Dimensions: []string{"agent_id"}, Range: january,
		columns: []string{"agent_id", "agent_name", "run_count"}}
	for querying.Err() == nil {
		a, err := c.query(ctx, q.body())
		switch {
		case ctx.Err() != nil:
		case err != nil:
			g.victim.add("no answer")
		case g.ofProxy(a):
			g.victim.add(fmt.Sprintf("the proxy's %d", a.status))
		case a.breach() != "":
			g.victim.add("another one's answer")
			g.foreign.add("the victim got %s", a.breach())
		default:
			g.judgeVictim(q, a)
		}
	}
}

func (g *smuggling) judgeVictim(q question, a answer) {
	p, err := q.check(a.body)
	if a.status == http.StatusOK && err == nil && len(p.Rows) == 1 &&
		p.Rows[0][1] == victimAgent && p.Rows[0][2] == float64(victimRuns) {
		g.victim.add("its own rows")
		return
	}
	g.victim.add("another one's answer")
	g.foreign.add("the victim got %d %.200s under its own x-request-id", a.status, a.body)
}

// ofProxy reports whether an answer is one that a proxy made itself.
func (g *smuggling) ofProxy(a answer) bool {
	return !g.way.direct && a.status >= http.StatusBadRequest &&
		a.header.Get("X-Request-Id") == "" && a.header.Get("Content-Type") != "application/json"
}
