package assistant

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/runlens/runlens/cmd/internal/members"
	"github.com/runlens/runlens/http/client"
	"github.com/runlens/runlens/http/client/report"
)

// maxRowBytes bounds the rows of an answer as JSON, inclusive. An assistant reads all of them, at a price.
const maxRowBytes = 64 << 10

// A column describes a position of every row.
type column struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Unit        string `json:"unit,omitempty"`
	Description string `json:"description,omitempty"`
	Additive    *bool  `json:"additive,omitempty"` // of a metric
}

type answer struct {
	Range     client.ResponseRange `json:"range"`
	AsOf      time.Time            `json:"asOf"`
	Today     string               `json:"today"` // in the range's timezone
	Columns   []column             `json:"columns"`
	Rows      [][]client.Value     `json:"rows"`
	Warnings  []client.Warning     `json:"warnings"`
	Notes     []string             `json:"notes,omitempty"`
	Cursor    string               `json:"cursor,omitempty"`
	Truncated string               `json:"truncated,omitempty"`
	QueryID   string               `json:"queryId"`
}

// tools answers calls.
type tools struct {
	Config
	server *mcp.Server
	known  atomic.Pointer[client.Catalog] // nil until it was read
}

// catalog is the one that the schemas of the tools are made of; only a new version of the server changes it. The first
// one that is read also replaces the schemas, which clients are told. The error is one line that says what to do.
func (t *tools) catalog(ctx context.Context) (*client.Catalog, error) {
	if known := t.known.Load(); known != nil {
		return known, nil
	}
	within, cancel := context.WithTimeoutCause(ctx, catalogWithin,
		fmt.Errorf("the server at %s has not answered within %v", t.Client.URL(), catalogWithin))
	defer cancel()
	catalog, err := t.Client.Catalog(within)
	if err != nil {
		return nil, t.explained(ctx, err, client.Query{})
	}
	if t.known.CompareAndSwap(nil, catalog) {
		t.offerQuery(catalog)
	}
	return catalog, nil
}

// listWithCatalog has the list of tools ask for the catalog while it is not known.
func (t *tools) listWithCatalog() {
	t.server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, request mcp.Request) (mcp.Result, error) {
			if method == "tools/list" {
				_, _ = t.catalog(ctx) // the calls say why
			}
			return next(ctx, method, request)
		}
	})
}

// offerQuery offers the tool query with the members of a catalog.
func (t *tools) offerQuery(catalog *client.Catalog) {
	mcp.AddTool(t.server, &mcp.Tool{
		Name: "query", Title: "Ask a question", Annotations: reads(),
		Description:  "Answers one question about a range of days as a table, compared with an earlier period if you like.",
		InputSchema:  querySchema(catalog),
		OutputSchema: answerSchema(),
	}, t.query)
}

// query answers the tool of this name.
func (t *tools) query(
	ctx context.Context, _ *mcp.CallToolRequest, asked arguments,
) (*mcp.CallToolResult, *answer, error) {
	catalog, err := t.catalog(ctx)
	if err != nil {
		return nil, nil, err
	}
	run, err := asked.run(t.Client, t.Now())
	if err != nil {
		return nil, nil, err
	}
	a, err := t.answered(ctx, run, catalog)
	if err != nil {
		return nil, nil, t.explained(ctx, err, run.Query())
	}
	return nil, a, nil
}

// columnsOf adds to the columns what the catalog says of them, and of the metric that they are derived from.
func columnsOf(columns []report.Column, run *report.Run, catalog *client.Catalog) (described []column) {
	q := run.Query()
	model := members.ModelOf(catalog, q.Model)
	for _, c := range columns {
		metric, end := report.PartName(c.Name)
		if end == report.EndPercent { // has another unit than its metric
			metric = c.Name
		}
		d := column{Name: metric}
		d.describe(model, q.Range.Timezone)
		switch d.Name, d.Type = c.Name, c.Type(); {
		case end == report.EndPrevious:
			d.Description = "The value of the period that is compared with."
		case end == report.EndDifference:
			d.Description = "The value less the earlier one."
		case c.Kind == report.Percent:
			d.Description, d.Unit = "The change in percent of the earlier value.", "percent"
		case c.Member == "" && c.Kind == report.Date:
			d.Description, d.Unit = "The first day of the "+c.Name+".", "day in "+q.Range.Timezone
		}
		described = append(described, d)
	}
	return described
}

func (c *column) describe(model client.Model, timezone string) {
	c.Description = members.DescriptionOf(model, c.Name)
	for _, m := range model.Metrics {
		if m.Name == c.Name {
			c.Unit, c.Additive = members.Unit(m.Name), &m.Additive
		}
	}
	for _, d := range model.Dimensions {
		if d.Name == c.Name && d.Type == client.TypeDate {
			c.Unit = "day in " + timezone
		}
	}
}

// readCatalog answers the tool catalog. Its time spares an assistant a guess of what today is.
func (t *tools) readCatalog(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
	catalog, err := t.catalog(ctx)
	if err != nil {
		return nil, nil, err
	}
	return nil, struct {
		Now time.Time `json:"now"`
		members.Catalog
	}{t.Now().UTC().Truncate(time.Second), members.Describe(catalog)}, nil
}
