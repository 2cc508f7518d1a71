package assistant

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/runlens/runlens/cmd/internal/members"
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
	Columns   []column             `json:"columns"`
	Rows      [][]client.Value     `json:"rows"`
	Warnings  []client.Warning     `json:"warnings"`
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
	ctx context.Context, _ *mcp.CallToolRequest, q client.Query,
) (*mcp.CallToolResult, *answer, error) {
	page, err := t.Client.Query(ctx, q)
	if err != nil {
		return nil, nil, t.explained(ctx, err, q)
	}
	a := &answer{Range: page.Range, AsOf: page.AsOf, Columns: columnsOf(t.catalog, q.Model, page), Warnings: page.Warnings,
		Cursor: page.Cursor, QueryID: page.QueryID}
	if a.Rows, err = fitting(page.Rows); err != nil {
		return nil, nil, err
	}
	if left := len(page.Rows) - len(a.Rows); left > 0 {
		// The cursor goes on after the rows that are left out here.
		a.Cursor = ""
		a.Truncated = fmt.Sprintf("%d of %d rows are left out, since an answer has at most %d bytes of them; "+
			"ask with limit %d, fewer dimensions or a filter", left, len(page.Rows), maxRowBytes, max(len(a.Rows), 1))
	}
	return nil, a, nil
}

// fitting is the rows, from the first one on, that an answer has space for.
func fitting(rows [][]client.Value) ([][]client.Value, error) {
	size := 0
	for i, row := range rows {
		text, err := json.Marshal(row)
		if err != nil {
			return nil, err
		}
		if size += len(text) + len(","); size > maxRowBytes {
			return rows[:i], nil
		}
	}
	return rows, nil
}

// columnsOf adds to the columns what the catalog says of them.
func columnsOf(catalog *client.Catalog, model string, page *client.Response) (columns []column) {
	for _, c := range page.Columns {
		described := column{Name: c.Name, Type: c.Type}
		for _, m := range catalog.Models {
			if m.Name == model {
				described.describe(m, page.Range.Timezone)
			}
		}
		columns = append(columns, described)
	}
	return columns
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

// readCatalog answers the tool catalog.
func (t tools) readCatalog(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
	return nil, members.Describe(t.catalog), nil
}
