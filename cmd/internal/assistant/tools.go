package assistant

import (
	"context"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/runlens/runlens/cmd/internal/members"
	"github.com/runlens/runlens/cmd/internal/report"
	"github.com/runlens/runlens/http/client"
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

// tools answers calls. The catalog is the one that their schemas are made of; only a new version of the server changes
// it.
type tools struct {
	Config
	catalog *client.Catalog
}

// query answers the tool of this name.
func (t tools) query(
	ctx context.Context, _ *mcp.CallToolRequest, asked arguments,
) (*mcp.CallToolResult, *answer, error) {
	run, err := asked.run(t.Client, t.Now())
	if err != nil {
		return nil, nil, err
	}
	a, err := t.answered(ctx, run)
	if err != nil {
		return nil, nil, t.explained(ctx, err, run.Query())
	}
	return nil, a, nil
}

// columns adds to the columns what the catalog says of them, and of the metric that they are derived from.
func (t tools) columns(columns []report.Column, run *report.Run) (described []column) {
	q := run.Query()
	for _, c := range columns {
		metric, end := report.PartName(c.Name)
		if end == report.EndPercent { // has another unit than its metric
			metric = c.Name
		}
		d := column{Name: metric}
		for _, m := range t.catalog.Models {
			if m.Name == q.Model {
				d.describe(m, q.Range.Timezone)
			}
		}
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
	for _, m := range model.Metrics {
		if m.Name == c.Name {
			c.Unit, c.Description, c.Additive = members.Unit(m.Name), m.Description, &m.Additive
		}
	}
	for _, d := range model.Dimensions {
		if d.Name == c.Name {
			c.Description = d.Description
			if d.Type == client.TypeDate {
				c.Unit = "day in " + timezone
			}
		}
		for _, companion := range d.Companions {
			if companion.Name == c.Name {
				c.Description = companion.Description
			}
		}
	}
}

// readCatalog answers the tool catalog. Its time spares an assistant a guess of what today is.
func (t tools) readCatalog(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
	return nil, struct {
		Now time.Time `json:"now"`
		members.Catalog
	}{t.Now().UTC().Truncate(time.Second), members.Describe(t.catalog)}, nil
}
