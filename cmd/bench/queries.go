package main

import (
	"context"
	"fmt"

	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
)

// filterAgent is one of the agents with many runs.
const filterAgent = "3"

// largeQuestions are the questions of the large organization.
func (b *bench) largeQuestions(ctx context.Context) ([]question, error) {
	var agent string
	err := b.store.Conn().QueryRow(ctx, "SELECT toString("+agentID(filterAgent)+")").Scan(&agent)
	return questions(agent), err
}

// An inquiry is a question of one organization, with the ways to have it answered and the last answers.
type inquiry struct {
	bench        *bench
	question     question
	organization schema.OrganizationID
	body         []byte
	naiveSQL     string

	response  []byte
	reference answer
}

func (b *bench) inquiry(q question, organization schema.OrganizationID) *inquiry {
	w := b.world.lastDays(q.days)
	return &inquiry{bench: b, question: q, organization: organization, body: q.body(w), naiveSQL: q.naive(organization, w)}
}

// api has it answered end to end: HTTP, key, limits, compilation, ClickHouse, JSON.
func (a *inquiry) api(ctx context.Context) error { return a.askBy(ctx, a.bench.api[a.organization]) }

// askBy has it answered by the server of a client.
func (a *inquiry) askBy(ctx context.Context, client *apiClient) (err error) {
	a.response, err = client.query(ctx, a.body)
	return err
}

// naive has it answered by the reference.
func (a *inquiry) naive(ctx context.Context) (err error) {
	if a.reference, err = runNaive(ctx, a.bench.store.Conn(), a.naiveSQL); err != nil {
		return fmt.Errorf("naive: %w", err)
	}
	return nil
}

// check compares the last answer of the API with the last one of the reference.
func (a *inquiry) check() error {
	ours, err := answerOfJSON(a.response)
	if err == nil {
		a.bench.report.check(string(a.organization)+", "+a.question.title(), ours, a.reference)
	}
	return err
}

// measureQueries measures the large organization's questions against the naive tables.
func (b *bench) measureQueries(ctx context.Context) error {
	all, err := b.largeQuestions(ctx)
	if err != nil {
		return err
	}
	return b.compareWithNaive(ctx, "query", "", b.world.large, all)
}

// compareWithNaive measures questions of a class against the naive tables as they are. The names of the results begin
// with prefix.
func (b *bench) compareWithNaive(ctx context.Context, scenario, prefix string, c class, asked []question) error {
	for _, q := range asked {
		a := b.inquiry(q, c.first())
		measured, err := b.compare(ctx, a.api, a.naive)
		if err != nil {
			return fmt.Errorf("%s: %w", q.title(), err)
		}
		if err := a.check(); err != nil {
			return err
		}
		b.report.add(ratio(scenario, prefix+q.title(), "naive", measured[0], measured[1], q.atMost))
	}
	return nil
}

// maxQueryMiB is below what one query of the large organization should stay.
const maxQueryMiB = 1024

// measureMemory reads the most memory that each statement used in ClickHouse.
func (b *bench) measureMemory(ctx context.Context) error {
	all, err := b.largeQuestions(ctx)
	if err != nil {
		return err
	}
	probe, err := b.openMemoryProbe()
	if err != nil {
		return err
	}
	defer probe.Close()
	for _, q := range all {
		a := b.inquiry(q, b.world.large.first())
		state, err := snapshot.ReadLog(ctx, b.store.Conn())
		if err != nil {
			return err
		}
		statement, err := b.statement(b.world.large, a.body, state)
		if err != nil {
			return err
		}
		if _, err := runBare(ctx, probe, statement); err != nil {
			return fmt.Errorf("%s: %w", q.title(), err)
		}
		ours := statsOf([]float64{probe.peakMiB()})
		if _, err := runNaive(ctx, probe, a.naiveSQL); err != nil {
			return fmt.Errorf("%s: naive: %w", q.title(), err)
		}
		reference := statsOf([]float64{probe.peakMiB()})
		r := result{
			Scenario:  "memory",
			Name:      q.title(),
			Unit:      "MiB",
			Ours:      ours,
			Against:   "naive",
			Reference: reference,
			Measured:  ours.Median,
		}
		b.report.add(r.goal(fmt.Sprintf("under %d MiB", maxQueryMiB), ours.Median < maxQueryMiB))
	}
	return nil
}

func (p *memoryProbe) peakMiB() float64 { return float64(p.peak.Load()) / (1 << 20) }

const (
	// A small organization's request should cost at most this much of its statement alone, or this many milliseconds more.
	mostOfBare  = 1.25
	mostBesides = 1
)

// measureSmall measures what the server adds to its own statements.
func (b *bench) measureSmall(ctx context.Context) error {
	all, err := b.largeQuestions(ctx)
	if err != nil {
		return err
	}
	for _, q := range monthly(all) {
		a := b.inquiry(q, b.world.small.first())
		statement, err := b.statement(b.world.small, a.body, snapshot.Log{})
		if err != nil {
			return err
		}
		bare := func(ctx context.Context) error {
			_, err := runBare(ctx, b.store.Conn(), statement)
			return err
		}
		measured, err := b.compare(ctx, a.api, bare)
		if err != nil {
			return fmt.Errorf("%s: %w", q.title(), err)
		}
		if err := a.naive(ctx); err != nil {
			return err
		}
		if err := a.check(); err != nil {
			return err
		}
		api, alone := measured[0], measured[1]
		r := ratio("small", q.title(), "bare", api, alone, mostOfBare)
		b.report.add(
			r.goal(fmt.Sprintf("at most %.2f or +%d ms", mostOfBare, mostBesides),
				r.Measured <= mostOfBare || api.Median-alone.Median <= mostBesides),
		)
	}
	return nil
}
