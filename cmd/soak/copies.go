package main

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"time"
)

const (
	copiedOrganization = "copied"
	copiedRuns         = 200 // of one file

	// copyTries bounds how often one file is ingested until it is acknowledged, as a user would repeat the command.
	copyTries = 20
)

// copies is what was ingested during everything else.
type copies struct {
	runs     atomic.Int64
	outcomes counts
}

// acknowledged is how many runs have been acknowledged.
func (c *copies) acknowledged() int64 { return c.runs.Load() }

// ingest stores small files one after the other, each until it is acknowledged, so that what is stored is known.
func (m *mixture) ingest(ctx, end context.Context) {
	for n := 0; end.Err() == nil; n++ {
		file := filepath.Join(m.target.dir, "copied.ndjson")
		if err := writeRuns(file, copiedOrganization, "Copied", copiedRuns, time.Now()); err != nil {
			m.copies.outcomes.add("no file: " + err.Error())
			return
		}
		m.ingestUntilAcknowledged(ctx, file)
	}
}

func (m *mixture) ingestUntilAcknowledged(ctx context.Context, file string) {
	for range copyTries {
		command, cancel := context.WithTimeout(ctx, commandPatience)
		stored, err := m.target.ingest(command, file)
		cancel()
		if err == nil {
			m.copies.outcomes.add("acknowledged")
			m.copies.runs.Add(int64(stored))
			return
		}
		if ctx.Err() != nil {
			return
		}
		m.copies.outcomes.add("failed, repeated")
	}
	m.copies.outcomes.add("given up")
}

// countCopies counts how many runs of the ingested organization there are.
func (m *mixture) countCopies(ctx context.Context) (int64, error) {
	c, err := m.target.client(ctx, copiedOrganization)
	if err != nil {
		return 0, err
	}
	defer c.rest()
	now := time.Now().UTC()
	q := question{Model: "agent_runs", Metrics: []string{"run_count"}, columns: []string{"run_count"},
		Range: dateRange{now.AddDate(0, 0, -2).Format(time.DateOnly), now.AddDate(0, 0, 1).Format(time.DateOnly), "UTC"}}
	a, err := c.query(ctx, q.body())
	if err != nil {
		return 0, err
	}
	if a.status != http.StatusOK {
		return 0, fmt.Errorf("%d: %s", a.status, a.body)
	}
	p, err := q.check(a.body)
	if err != nil {
		return 0, err
	}
	count, number := p.Rows[0][0].(float64)
	if !number {
		return 0, fmt.Errorf("the rows %v", p.Rows)
	}
	return int64(count), nil
}
