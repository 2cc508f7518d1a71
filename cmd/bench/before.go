package main

import (
	"context"
	"fmt"
	"path/filepath"
)

// mostOfBefore is what a question may cost of what it cost before a change.
const mostOfBefore = 1.05

// measureBefore measures the binary against another one, of before a change: what a question of each size takes of the
// processors, of the engine and of both servers, which are on the same store and asked in turns. The other one leaves
// maintenance to the first.
func (b *bench) measureBefore(ctx context.Context) (err error) {
	if b.Before == "" {
		return nil
	}
	product := b.product(b.storeDir())
	product.Binary = b.Before
	if b.before, err = b.serve(ctx, product, filepath.Join(b.folder.Dir, "before"), 0); err != nil {
		return err
	}
	defer func() {
		b.before.Stop()
		b.before = nil
	}()
	all, err := b.largeQuestions(ctx)
	if err != nil {
		return err
	}
	return b.eachSize(all, func(c class, asked []question, _ bool) error {
		client, err := b.client(ctx, b.before, c.first())
		if err != nil {
			return err
		}
		for _, q := range asked {
			if err := b.compareWithBefore(ctx, c, q, client); err != nil {
				return fmt.Errorf("%s: %w", q.title(), err)
			}
		}
		return nil
	})
}

// compareWithBefore measures one question. Both answers have to be the same.
func (b *bench) compareWithBefore(ctx context.Context, c class, q question, client *apiClient) error {
	now := b.inquiry(q, c.first())
	before := *now
	found, err := b.costs(ctx, b.Repeat, now.api, func(ctx context.Context) error { return before.askBy(ctx, client) })
	if err != nil {
		return err
	}
	if now.reference, err = answerOfJSON(before.response); err != nil {
		return err
	}
	if err := now.check(); err != nil {
		return err
	}
	name := c.title() + ": " + q.title()
	b.report.add(comparison("before", name, "before", found[0].latency, found[1].latency))
	if found[1].processor.Median > 0 { // where the system tells it
		b.report.add(ratio("before, processor", name, "before", found[0].processor, found[1].processor, mostOfBefore))
	}
	return nil
}
