package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

// A stream sends questions of organizations of one size, one after the other. Streams send at once. Each pauses after
// an answer for as long as it took: of a machine that is always busy one would only see that arriving rows take a part.
type stream struct {
	name    string
	asked   []question
	clients []*apiClient
	world   world
}

// times are of a stream's questions, in milliseconds, all of each.
type times [][]float64

// and are the times of both.
func (t times) and(other times) times {
	both := make(times, len(t))
	for i := range t {
		both[i] = slices.Concat(t[i], other[i])
	}
	return both
}

// mixedLoad are a stream of the large organization and one of the small ones.
func (b *bench) mixedLoad(ctx context.Context) ([]stream, error) {
	all, err := b.largeQuestions(ctx)
	if err != nil {
		return nil, err
	}
	small := stream{name: b.world.small.title(), asked: monthly(all), world: b.world}
	for o := range b.world.small.count {
		client, err := b.client(ctx, b.server, b.world.small.organization(o))
		if err != nil {
			return nil, err
		}
		small.clients = append(small.clients, client)
	}
	large := b.world.large
	return []stream{{large.title(), all, []*apiClient{b.api[large.first()]}, b.world}, small}, nil
}

// ask sends all streams for a while, and every question at least once.
func ask(ctx context.Context, streams []stream, lasting time.Duration) ([]times, error) {
	taken, until := make([]times, len(streams)), time.Now().Add(lasting)
	all, ctx := errgroup.WithContext(ctx)
	for k, s := range streams {
		all.Go(func() (err error) {
			if taken[k], err = s.ask(ctx, until); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			return nil
		})
	}
	return taken, all.Wait()
}

func (s stream) ask(ctx context.Context, until time.Time) (times, error) {
	taken := make(times, len(s.asked))
	for n := 0; n < len(s.asked) || time.Now().Before(until); n++ {
		i := n % len(s.asked)
		began := time.Now()
		if _, err := s.clients[n%len(s.clients)].query(ctx, s.asked[i].body(s.world.lastDays(s.asked[i].days))); err != nil {
			return nil, err
		}
		took := time.Since(began)
		taken[i] = append(taken[i], milliseconds(took))
		time.Sleep(took)
	}
	return taken, nil
}
