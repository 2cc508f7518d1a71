package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/worker"
)

type workerStatusCmd struct {
	tokenFlags
	AdminListen string `env:"RUNLENS_ADMIN_LISTEN" default:"127.0.0.1:9091" placeholder:"HOST:PORT" help:"@status_listen"`
	JSON        bool   `help:"Print the status as JSON."`
}

func (workerStatusCmd) Help() string {
	return `Shows lag, certainty and counts of each kind of records. The worker's admin address answers it.

Example:
  runlens worker status
  runlens worker status --admin-listen 127.0.0.1:9091 --json`
}

// statusTimeout bounds the wait for a worker's answer.
const statusTimeout = 5 * time.Second

func (c workerStatusCmd) Run(ctx context.Context, streams streams) error {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.AdminListen+"/status", nil)
	if err != nil {
		return usageError{fmt.Errorf("--admin-listen: %w", err)}
	}
	token, err := c.token()
	if err != nil {
		return err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("no worker answers at %s; name its admin address with --admin-listen", c.AdminListen)
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusUnauthorized {
		return errors.New("the worker's admin address requires its token: set RUNLENS_ADMIN_TOKEN or name a file with " +
			"--admin-token-file")
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("what answers at %s is no worker", c.AdminListen)
	}
	if c.JSON {
		_, err := io.Copy(streams.out, response.Body)
		return err
	}
	var reports cellReports
	if err := json.UnmarshalRead(response.Body, &reports); err != nil {
		return fmt.Errorf("what answers at %s is no worker", c.AdminListen)
	}
	for _, name := range slices.Sorted(maps.Keys(reports.Cells)) {
		say(streams.out, "cell %s:", name)
		if err := printStatus(streams.out, reports.Cells[name]); err != nil {
			return err
		}
	}
	if reports.Report == nil {
		return nil
	}
	return printStatus(streams.out, *reports.Report)
}

func printStatus(out io.Writer, r worker.Report) error {
	fmt.Fprintf(out, "%-12s %8s %24s %10s %12s %8s %8s\n",
		"kind", "lag", "certain until", "stored", "per second", "batches", "rejected")
	for _, kind := range normalize.Kinds {
		k := r.Kinds[kind]
		lag := "copying"
		if k.LagSeconds != nil {
			lag = fmt.Sprintf("%.1f s", *k.LagSeconds)
		}
		certain := "nothing is certain"
		if k.CertainUntil != nil {
			certain = k.CertainUntil.Format("2006-01-02T15:04:05.000Z")
		}
		fmt.Fprintf(out, "%-12s %8s %24s %10d %12.1f %8d %8d\n",
			kind, lag, certain, k.Stored, k.PerSecond, k.Batches, k.Rejected)
	}
	for _, kind := range normalize.Kinds {
		if name := r.Kinds[kind].WaitsFor; name != "" {
			say(out, "%s: not certain because of %s", kind, name)
		}
	}
	for _, kind := range normalize.Kinds {
		k := r.Kinds[kind]
		checkpoint := "none yet"
		if k.Checkpoint != nil {
			checkpoint = k.Checkpoint.Format(time.RFC3339)
		}
		fmt.Fprintf(out, "checkpoint of %s: %s, mapping %.8s\n", kind, checkpoint, k.Mapping)
	}
	if r.Failures > 0 {
		fmt.Fprintf(out, "the full comparison has FAILED %d times: %s\n", r.Failures, r.Failure)
	}
	last := "none yet"
	if d := r.Reconcile; d != nil {
		last = fmt.Sprintf("%s: %d days compared, %d differed, %d records copied again, %d replaced, "+
			"%d missing in the source, %d deleted, %d too many to delete, %d that break a rule in the source",
			d.EndedAt.Format(time.RFC3339), d.Compared, d.Differed, d.Repaired, d.Replaced,
			d.Missing, d.Deleted, d.Refused, d.Rejected)
	}
	_, err := fmt.Fprintf(out, "retries: %d\nlast reconcile: %s\n", r.Retries, last)
	return err
}
