package main

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/cmd/internal/output"
	"github.com/runlens/runlens/http/client"
	"github.com/runlens/runlens/http/client/report"
	"github.com/runlens/runlens/olap/usage"
	"github.com/runlens/runlens/schema"
)

// mostUsageRows is the greatest --limit of usage.
const mostUsageRows = 1_000_000

type usageCmd struct {
	storeFlags
	Org     string `placeholder:"ORG" help:"Only questions of this organization."`
	KeyID   string `placeholder:"KEY_ID" help:"Only questions with this key."`
	Last    string `default:"7d" placeholder:"7d" help:"How far back, such as 36h or 90d. Older ones are not kept."`
	By      string `enum:"organization,key,shape,question,refusal" default:"organization" help:"@usage_by"`
	Slowest bool   `help:"The slowest first (by p95_ms), instead of the most frequent."`
	Limit   int    `default:"20" help:"The most rows."`
	Output  string `enum:"table,csv,json" default:"table" help:"table, csv or json (an object a line)."`
}

func (usageCmd) Help() string {
	return `Sums up what was asked over the API: questions, refusals and limits hit, what they read in ClickHouse, and how
long answers took. Servers keep the shape of a question for 90 days, never the value of a filter, and write it
within seconds. 'runlens audit' shows who did what to keys and records.

processor_ms is empty for a server that reaches ClickHouse over HTTP, as the embedded engine is: only the native
protocol reports it.

Example:
  runlens usage --last 30d
  runlens usage --by key --org acme
  runlens usage --by shape --slowest --limit 5
  runlens usage --by refusal --output csv`
}

func (c usageCmd) Run(ctx context.Context, logger *slog.Logger, io streams) error {
	selection, err := c.selection(time.Now())
	if err != nil {
		return usageError{err}
	}
	_, stores, leave, err := c.openAll(ctx, logger, openMigrated)
	if err != nil {
		return err
	}
	defer leave()
	var conns []driver.Conn
	for _, store := range stores {
		conns = append(conns, store.Conn())
	}
	// One more shows whether there are further ones.
	selection.Limit++
	summaries, err := usage.Summarize(ctx, selection, conns...)
	if err != nil {
		return err
	}
	further := len(summaries) == selection.Limit
	if further {
		summaries = summaries[:c.Limit]
	}
	if err := c.print(io, selection.By, summaries); err != nil {
		return err
	}
	if further {
		say(io.err, "note: There are further rows: --limit shows more.")
	}
	return nil
}

func (c usageCmd) selection(now time.Time) (s usage.Selection, err error) {
	if c.Org != "" {
		if s.OrganizationID, err = schema.ParseOrganizationID(c.Org); err != nil {
			return s, fmt.Errorf("--org %w", err)
		}
	}
	last, err := parseSpan(c.Last)
	if err != nil {
		return s, fmt.Errorf("--last %w", err)
	}
	if c.Limit < 1 || c.Limit > mostUsageRows {
		return s, fmt.Errorf("--limit must be 1 to %d", mostUsageRows)
	}
	s.By, s.KeyID, s.Since, s.Slowest, s.Limit = usage.Grouping(c.By), c.KeyID, now.Add(-last), c.Slowest, c.Limit
	return s, nil
}

func (c usageCmd) print(io streams, by usage.Grouping, summaries []usage.Summary) error {
	format := c.Output
	if format == "json" {
		format = "ndjson"
	}
	w, err := output.New(format, io.out, output.Options{Width: output.Columns(io.out)})
	if err != nil {
		return err
	}
	// Programs get names and exact figures, people headings and what matters of a time.
	var columns []report.Column
	add := func(kind report.Kind, names ...string) {
		for _, name := range names {
			if c.Output == "table" {
				name = strings.ReplaceAll(name, "_", " ")
			}
			columns = append(columns, report.Column{Name: name, Kind: kind})
		}
	}
	add(report.Text, by.Columns()...)
	add(report.Count, "questions", "refused", "limited", "rows_read", "bytes_read")
	add(report.Number, "processor_ms", "mean_ms", "p95_ms", "max_ms")
	if err := w.Head(columns); err != nil {
		return err
	}
	for _, s := range summaries {
		var row report.Row
		for _, text := range s.Group {
			row = append(row, client.StringValue(text))
		}
		for _, count := range []uint64{s.Questions, s.Refused, s.Limited, s.RowsRead, s.BytesRead} {
			row = append(row, client.Int64Value(int64(count)))
		}
		for _, figure := range []*float64{s.ProcessorMs, s.MeanMs, s.P95Ms, s.MaxMs} {
			switch {
			case figure == nil:
				row = append(row, client.Value{})
			case c.Output == "table":
				row = append(row, client.Float64Value(math.Round(*figure*10)/10))
			default:
				row = append(row, client.Float64Value(*figure))
			}
		}
		if err := w.Row(row); err != nil {
			return err
		}
	}
	return w.End(report.Facts{})
}
