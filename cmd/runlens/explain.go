package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/alecthomas/kong"
	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"github.com/runlens/runlens/http/client/report"
	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/clickhouse"
	"github.com/runlens/runlens/olap/query"
	"github.com/runlens/runlens/schema"
)

type explainCmd struct {
	storeFlags
	givenQuestion
	Org    string `required:"" placeholder:"ORG" help:"The organization that asks."`
	Output string `enum:"json,text" default:"text" help:"json or text."`
}

func (explainCmd) Help() string {
	return `Answers a question on the store itself, as a server does that was just started, and says how: the strategy and
why others were rejected, the SQL with its parameters, what indexes leave to read of each table, ClickHouse's plan,
and what it read and took. The question is given as to 'runlens query', of which this is the first page. The output
quotes the values of filters.

Example:
  runlens explain --org acme --metrics run_count --dimensions agent_id --last 30d
  runlens explain --org acme @weekly --output json
  runlens explain --org acme --body question.json`
}

func (c explainCmd) Run(ctx context.Context, command *kong.Context, logger *slog.Logger, io streams) error {
	return interruptible(ctx, 0, func(ctx context.Context) error { return c.explain(ctx, command, logger, io) })
}

func (c explainCmd) explain(ctx context.Context, command *kong.Context, logger *slog.Logger, io streams) error {
	organization, err := schema.ParseOrganizationID(c.Org)
	if err != nil {
		return usageError{fmt.Errorf("--org %w", err)}
	}
	asked, err := c.query(explicitFlags(command), io)
	if err != nil {
		return usageError{err}
	}
	return c.inCellOf(ctx, organization, reading, logger, func(store *clickhouse.Server) error {
		return c.explainIn(ctx, store, organization, asked, io)
	})
}

func (c explainCmd) explainIn(
	ctx context.Context, store *clickhouse.Server, organization schema.OrganizationID, asked query.Query, io streams,
) error {
	secrets, err := olap.CursorSecrets(ctx, store.Conn())
	if err != nil {
		return err
	}
	x, err := olap.NewEngine(store.Conn(), secrets...).Explain(ctx, olap.Request{
		Access: schema.WholeOrganization(organization), Query: asked, QueryID: uuid.New(),
	})
	var refused *query.Error
	switch {
	case errors.As(err, &refused):
		return usageError{err}
	case err != nil:
		return err
	}
	shown := shownExplanation(organization, asked, x)
	if c.Output == "json" {
		return shown.writeJSON(io.out)
	}
	return shown.writeText(io.out)
}

// query is the first one that runlens query would send. Its error is wrong usage.
func (c *explainCmd) query(given map[string]bool, io streams) (query.Query, error) {
	body, _, err := c.read(given, io.in)
	if err != nil {
		return query.Query{}, err
	}
	run := &report.Run{Question: c.Question, Body: body}
	if err := run.Check(time.Now()); err != nil {
		return query.Query{}, err
	}
	request, err := json.Marshal(run.First())
	if err != nil {
		return query.Query{}, err
	}
	return query.Parse(request)
}
