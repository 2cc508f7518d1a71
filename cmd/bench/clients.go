package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/runlens/runlens/schema"
)

const (
	// leastOfNaive is how many requests a second there should be, of those of the naive SQL on merged tables.
	leastOfNaive = 1.0
	// A repeated question should take at most mostRepeated of the naive SQL's time, and there should be leastRepeated
	// times as many of them a second.
	mostRepeated, leastRepeated = 0.25, 10.0
)

// atOnce is how many clients ask at once.
var atOnce = []int{1, 8, 16, 64}

// askers are clients of the small organizations, in their order, at most so many, of another server.
func (b *bench) askers(ctx context.Context, most int, flags ...string) (all []*asker, stop func(), err error) {
	dir := filepath.Join(b.folder.Dir, "second")
	server, err := b.startServer(ctx, dir, b.Share, flags...)
	if err != nil {
		return nil, nil, err
	}
	for o := range min(uint64(most), b.world.small.count) {
		organization := b.world.small.organization(o)
		client, err := b.client(ctx, server, organization)
		if err != nil {
			server.Stop()
			return nil, nil, err
		}
		all = append(all, &asker{organization, client})
	}
	return all, server.Stop, nil
}

// An asker is a client of one organization.
type asker struct {
	organization schema.OrganizationID
	client       *apiClient
}

// measureClients measures requests a second of several clients at once, each of an organization of its own.
func (b *bench) measureClients(ctx context.Context) error {
	all, err := b.largeQuestions(ctx)
	if err != nil {
		return err
	}
	askers, stop, err := b.askers(ctx, atOnce[len(atOnce)-1])
	if err != nil {
		return err
	}
	defer stop()
	asked := monthly(all)
	for _, clients := range atOnce {
		api := func(ctx context.Context, n int) error {
			_, err := askers[n%clients%len(askers)].client.query(ctx, asked[n%len(asked)].body(b.world.lastDays(monthDays)))
			return err
		}
		naive := func(ctx context.Context, n int) error {
			sql := asked[n%len(asked)].naive(askers[n%clients%len(askers)].organization, b.world.lastDays(monthDays))
			_, err := runNaive(ctx, b.store.Conn(), strings.ReplaceAll(sql, "naive_", mergedPrefix))
			return err
		}
		r, err := b.compareRates(ctx, clients, api, naive)
		if err != nil {
			return err
		}
		r.Scenario, r.Name = "clients", fmt.Sprintf("%d clients, %d runs each, 30 days", clients, b.world.small.size)
		b.report.add(r.goal(fmt.Sprintf("at least %.2f", leastOfNaive), r.Measured >= leastOfNaive))
	}
	return nil
}

// compareRates measures how often both get the work done in a second, in turns.
func (b *bench) compareRates(
	ctx context.Context, clients int, api, naive func(ctx context.Context, n int) error,
) (result, error) {
	var rates [2][]float64
	for range b.Rounds {
		for i, work := range []func(context.Context, int) error{api, naive} {
			rate, err := b.perSecond(ctx, clients, work)
			if err != nil {
				return result{}, err
			}
			rates[i] = append(rates[i], rate)
		}
	}
	r := result{Unit: "requests/s", Ours: statsOf(rates[0]), Against: "merged naive", Reference: statsOf(rates[1])}
	r.Measured = r.Ours.Median / r.Reference.Median
	return r, nil
}

// measureRepeated measures a question that is asked again while nothing changes, with answers cached.
func (b *bench) measureRepeated(ctx context.Context) error {
	all, err := b.largeQuestions(ctx)
	if err != nil {
		return err
	}
	askers, stop, err := b.askers(ctx, 1, "--answer-cache-mib", "64")
	if err != nil {
		return err
	}
	defer stop()
	for i, q := range monthly(all) {
		body := q.body(b.world.lastDays(monthDays))
		sql := strings.ReplaceAll(q.naive(askers[0].organization, b.world.lastDays(monthDays)), "naive_", mergedPrefix)
		api := func(ctx context.Context, _ int) error {
			_, err := askers[0].client.query(ctx, body)
			return err
		}
		naive := func(ctx context.Context, _ int) error {
			_, err := runNaive(ctx, b.store.Conn(), sql)
			return err
		}
		for range 2 { // it is cached the second time
			if err := api(ctx, 0); err != nil {
				return err
			}
		}
		measured, err := b.compare(ctx, func(ctx context.Context) error { return api(ctx, 0) },
			func(ctx context.Context) error { return naive(ctx, 0) })
		if err != nil {
			return err
		}
		b.report.add(ratio("repeated", q.title(), "merged naive", measured[0], measured[1], mostRepeated))
		if i > 0 {
			continue
		}
		const clients = 16
		r, err := b.compareRates(ctx, clients, api, naive)
		if err != nil {
			return err
		}
		r.Scenario, r.Name = "repeated", fmt.Sprintf("%d clients, %s", clients, q.title())
		b.report.add(r.goal(fmt.Sprintf("at least %.0f", leastRepeated), r.Measured >= leastRepeated))
		one, err := b.perSecond(ctx, clients, func(ctx context.Context, _ int) error {
			_, err := runNaive(ctx, b.store.Conn(), "SELECT 1")
			return err
		})
		if err != nil {
			return err
		}
		b.report.Notes.Add("SELECT 1 with %d clients: %.0f a second", clients, one)
	}
	return nil
}
