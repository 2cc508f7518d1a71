package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/runlens/runlens/olap/backoff"
	"github.com/runlens/runlens/olap/snapshot"
)

const (
	// stragglers is how long a start waits for further cells once one is open.
	stragglers = 5 * time.Second
	// reopenEvery is the pause between two attempts to open a cell that is away.
	reopenEvery = 5 * time.Second
)

// openCells opens the cells. The only one has to be open before the server answers. Of several one is enough, and those
// that are away are tried again until background is done.
func (a *app) openCells(ctx, background context.Context) error {
	if len(a.cells) == 1 {
		return a.cells[0].open(ctx, background)
	}
	tried := make(chan error, len(a.cells))
	for _, c := range a.cells {
		a.background.Go(func() { c.openUntil(ctx, background, tried) })
	}
	var failures []error
	var enough <-chan time.Time
	for range a.cells {
		select {
		case err := <-tried:
			if err != nil {
				failures = append(failures, err)
			} else if enough == nil {
				enough = time.After(stragglers)
			}
		case <-enough:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if enough == nil {
		return errors.Join(failures...)
	}
	return nil
}

// openUntil opens the cell, and tells tried how the first attempt ended.
func (c *cell) openUntil(ctx, background context.Context, tried chan<- error) {
	err := c.open(ctx, background)
	tried <- err
	failures := backoff.Failures{Logger: c.logger, First: reopenEvery, Longest: reopenEvery}
	for err != nil {
		pause := failures.Failed(background, slog.LevelError, "the cell is away: its organizations have no answers",
			"error", oneLine(err))
		if snapshot.Pause(background, pause) != nil {
			return
		}
		err = c.open(background, background)
	}
	failures.Succeeded(background, "the cell is open")
}

// queriesAtOnce is how many queries each cell runs at once.
func (a *app) queriesAtOnce(c serveCmd) int {
	least := c.GlobalConcurrency
	for _, one := range a.cells {
		if opened := one.opened.Load(); opened != nil {
			least = min(least, opened.queries)
		}
	}
	return least
}

// ready says what is missing until requests can be answered. Of several cells one is enough: to take a server out of
// service for one that is away would cost the organizations of the others their answers.
func (a *app) ready(ctx context.Context) error {
	answers := make(chan error, len(a.cells))
	for _, c := range a.cells {
		go func() { answers <- c.ready(ctx) }()
	}
	var first error
	for range a.cells {
		err := <-answers
		if err == nil {
			return nil
		}
		if first == nil {
			first = err
		}
	}
	if len(a.cells) > 1 {
		return fmt.Errorf("no cell can be used: %w", first)
	}
	return first
}
