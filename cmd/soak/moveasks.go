package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/runlens/runlens/cmd/internal/harness"
)

// asked is what was seen of questions during moves.
type asked struct {
	questions, pages counts
	outcomes         counts   // of requests
	partial          examples // answers without what was acknowledged
	receding         examples // answers without what was in an answer before
	doubled          examples // answers with more than was sent
	disagreeing      examples // pages that don't go on with the first one
	wrong            examples // refusals and answers that are none
	waits            latencies
	lock             sync.Mutex
	longest          string // what was waited for longest
	longestTime      time.Duration
}

func (a *asked) report(s *soak) {
	s.see("questions, by model", "%s", &a.questions)
	s.see("pages, by number", "%s", &a.pages)
	s.see("requests, by outcome", "%s", &a.outcomes)
	s.see("longest time without an answer", "%v, %s; 99 of 100 in %v", a.longestTime.Round(time.Second/10), a.longest,
		a.waits.quantile(0.99))
	s.none("answers that lack what was acknowledged", &a.partial)
	s.none("answers that lack what an answer before had", &a.receding)
	s.none("answers with more than was sent", &a.doubled)
	s.none("pages that disagree", &a.disagreeing)
	s.none("refused questions", &a.wrong)
}

// waited takes note of how long somebody tried until there was an answer.
func (a *asked) waited(took time.Duration, what string) {
	a.waits.add(took)
	a.lock.Lock()
	defer a.lock.Unlock()
	if took > a.longestTime {
		a.longestTime, a.longest = took, what
	}
}

// askPause leaves processor time for the moves.
const askPause = time.Second / 4

// An asker asks one question after the other, of any organization and any server; of the other one where there is no
// answer.
type asker struct {
	*relocation
	random *rand.Rand
}

func (a *asker) run(ctx, end context.Context) {
	for harness.Pause(end, askPause) {
		a.ask(ctx, a.organizations[a.random.IntN(len(a.organizations))])
	}
}

// ask asks for the numbers by day, in one page or in several, and compares them.
func (a *asker) ask(ctx context.Context, o *movedOrganization) {
	q := question{Model: "agent_runs", Metrics: []string{"run_count"}, Dimensions: []string{"day"}, Limit: 100,
		Range: dateRange{"2026-01-01", "2026-05-31", "UTC"}, columns: []string{"day", "run_count"}}
	if a.random.IntN(2) == 0 {
		q.Model, q.Metrics = "agent_user_activity", []string{"attributed_run_count"}
		q.columns, q.nonAdditive = []string{"day", "attributed_run_count"}, q.Metrics
	}
	if a.random.IntN(2) == 0 {
		q.Limit = 25
	}
	a.asked.questions.add(q.Model)
	b := o.history.least(q.Model)
	days, asOf := map[string]int{}, ""
	for n := 1; ; n++ {
		p, err := a.page(ctx, o, q)
		if err != nil {
			if ctx.Err() == nil {
				a.asked.wrong.add("%s: %v (%s)", o.name, err, a.now())
			}
			return
		}
		a.asked.pages.add(fmt.Sprint(n))
		if n == 1 {
			o.history.most(&b)
			asOf = p.AsOf
		} else if p.AsOf != asOf {
			a.asked.disagreeing.add("%s: page %d is as of %s, the first one of %s (%s)", o.name, n, p.AsOf, asOf, a.now())
		}
		for _, row := range p.Rows {
			day, _ := row[0].(string)
			count, _ := row[1].(float64)
			if _, again := days[day]; again {
				a.asked.disagreeing.add("%s: %s is on two pages (%s)", o.name, day, a.now())
			}
			days[day] = int(count)
		}
		if p.Cursor == nil {
			break
		}
		q.Cursor = *p.Cursor
	}
	a.compare(o, q, asOf, days, b)
	o.history.see(q.Model, asOf, days)
}

// compare holds an answer against what there was when it was asked for and when it had arrived.
func (a *relocation) compare(o *movedOrganization, q question, asOf string, days map[string]int, b bounds) {
	told := func(kind *examples, what string) {
		kind.add("%s of %s, asked in pages of %d: %s (%s)", q.Model, o.name, q.Limit, what, a.now())
	}
	for day, before := range b.seen {
		if before.lacks(days[day], asOf) {
			told(&a.asked.receding, fmt.Sprintf("%d on %s as of %s, and %d before as of %s", days[day], day, asOf,
				before.records, before.asOf))
			break
		}
	}
	most := map[string]int{}
	for n := range movedRuns {
		day := epoch.AddDate(0, 2*(n%3), n%20).Format(time.DateOnly)
		most[day] = b.sent
		if days[day] < b.acknowledged {
			told(&a.asked.partial, fmt.Sprintf("%d on %s, and %d were acknowledged", days[day], day, b.acknowledged))
			return
		}
	}
	for n := range sourceDays {
		most[firstSourceDay.AddDate(0, 0, n).Format(time.DateOnly)] = b.inSource
	}
	for day, count := range days {
		if count > most[day] {
			told(&a.asked.doubled, fmt.Sprintf("%d on %s, and %d were sent", count, day, most[day]))
			break
		}
	}
}

// page asks until there is an answer. An error is a refusal that nothing excuses.
func (a *asker) page(ctx context.Context, o *movedOrganization, q question) (p page, err error) {
	first := a.random.IntN(len(a.servers))
	began := time.Now()
	defer func() { a.asked.waited(time.Since(began), fmt.Sprintf("%s at %s", o.name, a.now())) }()
	for n := first; ; n++ {
		c := newClient(a.servers[n%len(a.servers)].address(), o.key).hasty()
		reply, err := c.query(ctx, q.body())
		switch {
		case ctx.Err() != nil:
			return p, ctx.Err()
		case err != nil:
			a.asked.outcomes.add("no connection")
		case reply.status == http.StatusOK:
			a.asked.outcomes.add("200")
			return q.check(reply.body)
		case reply.status == http.StatusInternalServerError, reply.status == http.StatusTooManyRequests:
			a.asked.outcomes.add(fmt.Sprint(reply.status))
		default:
			var text json.RawMessage = reply.body
			return p, fmt.Errorf("%d %s", reply.status, text)
		}
		harness.Pause(ctx, time.Second/20)
	}
}
