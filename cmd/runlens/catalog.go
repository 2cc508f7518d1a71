package main

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/alecthomas/kong"

	"github.com/runlens/runlens/cmd/internal/explain"
	"github.com/runlens/runlens/cmd/internal/members"
	"github.com/runlens/runlens/cmd/internal/output"
	"github.com/runlens/runlens/http/client"
)

type catalogCmd struct {
	serverFlags
	Output string `enum:"json,table" default:"table" help:"json or table."`
}

func (catalogCmd) Help() string {
	return `Shows the models of a running server, with their metrics and dimensions. An indented name is a column that
comes with the dimension above it. As JSON it is the API's catalog, with units of metrics and operators of filters.

The API has no list of agents. A query shows those that have had runs.

Example:
  runlens catalog
  runlens catalog --output json | jq -r '.models[].metrics[].name'
  runlens query --metrics run_count --dimensions agent_id --last 366d --all   # the agents with their ids`
}

func (c catalogCmd) Run(ctx context.Context, command *kong.Context, io streams) error {
	return interruptible(ctx, 0, func(ctx context.Context) error { return c.show(ctx, command, io) })
}

func (c catalogCmd) show(ctx context.Context, command *kong.Context, io streams) error {
	server, err := c.client(explicitFlags(command), io, false)
	if err != nil {
		return err
	}
	answer, err := server.Catalog(ctx)
	switch {
	case ctx.Err() != nil:
		return errors.New("interrupted")
	case err != nil:
		line, _ := explain.Refusal(ctx, err, client.Query{}, server.Catalog)
		return errors.New(line)
	}
	catalog := members.Describe(answer)
	if c.Output == "json" {
		encoder := json.NewEncoder(io.out)
		encoder.SetEscapeHTML(false)
		return encoder.Encode(catalog)
	}
	return catalog.Write(io.out, output.Columns(io.out))
}
