package main

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/plan"
	"github.com/runlens/runlens/olap/query"
	"github.com/runlens/runlens/schema"
)

// A trick is what an engine does for speed, with a question that it makes quicker.
type trick struct {
	name     string
	of       func(world) class
	question string // its title among largeQuestions, or among monthly ones
	with     engineSettings
	without  engineSettings
}

// engineSettings are how an engine differs from that of a server that caches no answers.
type engineSettings struct {
	plan.Options
	answers int // bytes of cached answers; 0 for none
}

const cachedAnswers = 1 << 20

// asAbove is what makes the product answer a year of the organization below from the rollup.
const asAbove = 2 * plan.RollupFrom

// tricks has each of plan.Options, and the cache of answers.
var tricks = []trick{
	{"rollup", ofLarge, "additive, totals, 366 days", engineSettings{}, without(plan.Options{NoRollup: true})},
	{"rollup, below the threshold", ofBelow, "additive, totals, 366 days", without(plan.Options{Records: asAbove}),
		engineSettings{}},
	{"aggregates of the rollup", ofLarge, "additive, by day, 366 days", engineSettings{},
		without(plan.Options{NoAggregates: true})},
	{"cached delta", ofLarge, "additive, totals, 366 days", engineSettings{}, without(plan.Options{NoCachedDelta: true})},
	{"own clock", ofSmall, "additive, by agent_id, 30 days", engineSettings{}, without(plan.Options{NoOwnClock: true})},
	{"derived boundary", ofSmall, "additive, by agent_id, 30 days", without(plan.Options{NoOwnClock: true}),
		without(plan.Options{NoOwnClock: true, NoDerived: true})},
	{"join window", ofLarge, "statuses, by agent_id, 30 days", engineSettings{}, without(plan.Options{NoWindow: true})},
	{"packed days", ofLarge, "unique initiators, by day, 366 days", engineSettings{},
		without(plan.Options{NoPackedDays: true})},
	{"groups of pairs", ofLarge, "pairs, totals, 30 days", engineSettings{}, without(plan.Options{NoPairGroups: true})},
	{"cached answers", ofSmall, "additive, totals, 30 days", engineSettings{answers: cachedAnswers}, engineSettings{}},
}

func without(options plan.Options) engineSettings { return engineSettings{Options: options} }

func ofLarge(w world) class { return w.large }
func ofBelow(w world) class { return w.below }
func ofSmall(w world) class { return w.small }

// measureOptions measures what each trick saves: the processor time of its question without it, of that with it. Where
// the system does not tell that, it is the latency.
func (b *bench) measureOptions(ctx context.Context) error {
	all, err := b.largeQuestions(ctx)
	if err != nil {
		return err
	}
	all = append(all, monthly(all)...)
	for _, t := range tricks {
		for _, q := range all {
			if q.title() != t.question {
				continue
			}
			if err := b.measureTrick(ctx, t, q); err != nil {
				return fmt.Errorf("%s: %w", t.name, err)
			}
			break
		}
	}
	return nil
}

func (b *bench) measureTrick(ctx context.Context, t trick, q question) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop() // the engines follow the store until then
	c := t.of(b.world)
	a := b.inquiry(q, c.first())
	with, without := b.newAsked(ctx, a, t.with), b.newAsked(ctx, a, t.without)
	costs, err := b.costs(ctx, costTurns, with.ask, without.ask)
	if err != nil {
		return err
	}
	if err := a.naive(ctx); err != nil {
		return err
	}
	for _, side := range []*asked{with, without} {
		a.response = side.result.AppendJSON(nil)
		if err := a.check(); err != nil {
			return err
		}
	}
	ours, reference := costs[1].processor, costs[0].processor
	if reference.Median == 0 {
		ours, reference = costs[1].latency, costs[0].latency
	}
	b.report.add(comparison("options", "no "+t.name+", "+c.title()+": "+q.title(), "with it", ours, reference))
	return nil
}

// asked is an engine in this process that is asked one question again and again.
type asked struct {
	engine  *olap.Engine
	inquiry *inquiry
	result  *olap.Result
}

func (b *bench) newAsked(ctx context.Context, a *inquiry, settings engineSettings) *asked {
	engine := olap.NewEngine(b.store.Conn(), []byte("bench"))
	engine.Use(settings.Options)
	if settings.answers > 0 {
		engine.CacheAnswers(settings.answers)
	}
	go engine.Follow(ctx)
	return &asked{engine: engine, inquiry: a}
}

func (a *asked) ask(ctx context.Context) error {
	q, err := query.Parse(a.inquiry.body)
	if err == nil {
		a.result, err = a.engine.Run(ctx, olap.Request{
			Access: schema.WholeOrganization(a.inquiry.organization), Query: q, QueryID: uuid.New(),
		})
	}
	return err
}
