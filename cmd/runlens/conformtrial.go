package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/cmd/internal/explain"
	"github.com/runlens/runlens/http/auth"
	"github.com/runlens/runlens/http/client"
	"github.com/runlens/runlens/ingest"
	"github.com/runlens/runlens/ingest/purge"
	"github.com/runlens/runlens/ingest/source"
	"github.com/runlens/runlens/olap/clickhouse"
	"github.com/runlens/runlens/olap/conform"
	"github.com/runlens/runlens/olap/keys"
	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
)

const (
	// requestsOfAKey is below the default rate of 60 a minute, so that a key never has to wait for it.
	requestsOfAKey = 50
	keyLife        = time.Hour
	// soonWithin is how long a case of the kind "soon" may take to become right, and soonPause the time between tries.
	soonWithin = time.Minute
	soonPause  = time.Second
)

// A trial runs scripts against a server, with records and keys under organizations of its own.
type trial struct {
	streams
	stores []*clickhouse.Server
	writer ingest.Writer
	of     func(schema.OrganizationID) int // which of them has an organization
	url    string
	logger *slog.Logger
	prefix string                   // of the names of its organizations
	agents map[string]*conformAgent // by organization
}

// A conformAgent asks for one organization.
type conformAgent struct {
	client *client.Client
	left   int // requests of its key
}

func newTrial(
	stores []*clickhouse.Server, p *placed, url string, logger *slog.Logger, io streams,
) *trial {
	prefix := "conform-" + strings.ToLower(rand.Text()[:8]) + "-"
	return &trial{streams: io, stores: stores, writer: p.writer(stores, logger), of: p.index(), url: url,
		logger: logger, prefix: prefix,
		agents: map[string]*conformAgent{}}
}

func (t *trial) connOf(organization schema.OrganizationID) driver.Conn {
	return t.stores[t.of(organization)].Conn()
}

// run asks the questions of a script and adds what differs to a report.
func (t *trial) run(ctx context.Context, script conform.Named, report *conformReport) error {
	runner := conform.Runner{Ask: func(organization, body string) (conform.Answer, error) {
		return t.ask(ctx, organization, body)
	}}
	stored := time.Now()
	named := script.Rename(func(name string) string { return t.prefix + script.Name + "-" + name })
	for _, step := range named.Steps {
		if step.Records != nil {
			if err := t.store(ctx, script.Name, step.Records); err != nil {
				return err
			}
			stored = time.Now()
			continue
		}
		differences, err := t.check(ctx, &runner, step, stored.Add(soonWithin))
		if err != nil {
			return fmt.Errorf("%s.test line %d: %w", script.Name, step.Line, err)
		}
		report.Cases++
		if differences != nil {
			report.Failed = append(report.Failed, failedCase{script.Name, step.Line, step.Name, step.Rules, differences})
		}
	}
	return nil
}

// check asks a question, and again until a deadline where the case says that it becomes right soon.
func (t *trial) check(
	ctx context.Context, runner *conform.Runner, step conform.Step, deadline time.Time,
) ([]string, error) {
	for {
		differences, err := runner.Check(step)
		if err != nil || differences == nil || !step.Soon || time.Now().After(deadline) {
			return differences, err
		}
		if err := snapshot.Pause(ctx, soonPause); err != nil {
			return nil, err
		}
	}
}

// store copies records as ingest does.
func (t *trial) store(ctx context.Context, script string, records []conform.Record) error {
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	for _, r := range records {
		t.known(r.Organization())
		if err := encoder.Encode(r); err != nil {
			return err
		}
	}
	file := &source.File{Name: script, Format: source.NDJSON, Regular: true, Open: func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(lines.Bytes())), nil
	}}
	_, err := ingest.Run(ctx, ingest.Options{
		Sources: []*source.File{file}, Writer: t.writer, Logger: t.logger, StopOnError: true,
		OnReject: func(r ingest.Reject) error { return fmt.Errorf("the record of %s was rejected: %s", script, r.Error) },
	})
	return err
}

// known is what asks for an organization, which is purged at the end from now on.
func (t *trial) known(organization string) *conformAgent {
	if t.agents[organization] == nil {
		t.agents[organization] = &conformAgent{}
	}
	return t.agents[organization]
}

// ask sends a body with a key of an organization.
func (t *trial) ask(ctx context.Context, organization, body string) (conform.Answer, error) {
	agent := t.known(organization)
	if agent.left == 0 {
		if err := t.newKey(ctx, organization, agent); err != nil {
			return conform.Answer{}, err
		}
	}
	agent.left--
	response, err := agent.client.QueryJSON(ctx, []byte(body))
	var refused *client.Error
	switch {
	case errors.As(err, &refused) && refused.Status == 400:
		return conform.Answer{FailCode: refused.Code, FailParam: refused.Param}, nil
	case errors.As(err, &refused) && refused.Status == 401:
		return conform.Answer{}, errors.New("the server does not know a key that was just made: is it on this store?")
	case ctx.Err() != nil:
		return conform.Answer{}, errors.New("interrupted")
	case err != nil:
		line, _ := explain.Refusal(ctx, err, client.Query{}, nil)
		return conform.Answer{}, errors.New(line)
	}
	return answerOf(response), nil
}

func (t *trial) newKey(ctx context.Context, organization string, agent *conformAgent) error {
	now := time.Now().UTC()
	expires := now.Add(keyLife)
	text, key := newKey(schema.APIKey{
		OrganizationID: schema.OrganizationID(organization), Name: "conform", Scopes: []string{auth.ScopeAnalyticsRead},
		CreatedAt: now, KeyLimits: schema.KeyLimits{ExpiresAt: &expires},
	})
	if err := keys.NewStore(t.connOf(key.OrganizationID)).Put(ctx, key); err != nil {
		return err
	}
	agent.left = requestsOfAKey
	var err error
	agent.client, err = client.New(client.Config{URL: t.url, Key: text, UserAgent: "runlens-cli/" + version,
		OnWait: reportWait(t.err)})
	return err
}

// clean purges the organizations of the trial, also when ctx is done.
func (t *trial) clean(ctx context.Context) error {
	if len(t.agents) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), conformPatience)
	defer cancel()
	organizations := make([][]schema.OrganizationID, len(t.stores))
	for _, name := range slices.Sorted(maps.Keys(t.agents)) {
		organization := schema.OrganizationID(name)
		organizations[t.of(organization)] = append(organizations[t.of(organization)], organization)
	}
	var failures []error
	for i, of := range organizations {
		if len(of) == 0 {
			continue
		}
		if err := purge.Organization(of...).Run(ctx, t.stores[i].Conn(), func(purge.Step) {}); err != nil {
			failures = append(failures, fmt.Errorf(
				"%s; 'runlens purge --org ORG --yes' takes out what is left, where ORG is each of %s", oneLine(err), of))
		}
	}
	return errors.Join(failures...)
}

// answerOf is a page of the client as cases know it.
func answerOf(r *client.Response) conform.Answer {
	a := conform.Answer{AsOf: instant(r.AsOf), Start: instant(r.Range.StartUTC), End: instant(r.Range.EndUTC),
		Cursor: r.Cursor, Rows: conform.Rows{}}
	for _, c := range r.Columns {
		a.Columns = append(a.Columns, conform.Column(c))
	}
	for _, w := range r.Warnings {
		a.Warnings = append(a.Warnings, conform.Warning(w))
	}
	for _, row := range r.Rows {
		values := make([]any, len(row))
		for i, v := range row {
			if number, ok := v.Float64(); ok {
				values[i] = number
			} else if !v.IsNull() {
				values[i] = v.String()
			}
		}
		a.Rows = append(a.Rows, values)
	}
	return a
}
