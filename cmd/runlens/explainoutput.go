package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/runlens/runlens/cmd/internal/output"
	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/plan"
	"github.com/runlens/runlens/olap/query"
	"github.com/runlens/runlens/schema"
)

// An explanation is what explain prints, as JSON or as text.
type explanation struct {
	OrganizationID string          `json:"organization_id"`
	Query          json.RawMessage `json:"query"`
	AsOf           string          `json:"as_of"`
	Rows           int             `json:"rows"` // of the answer
	Strategy       olap.Strategy   `json:"strategy"`
	Why            string          `json:"why"` // the strategy's reason in words; empty where nothing quicker was rejected
	Rejected       []rejection     `json:"rejected"`
	SQL            string          `json:"sql"`
	Params         []param         `json:"params"`
	Plan           []string        `json:"plan"` // ClickHouse's
	Tables         []tableRead     `json:"tables"`
	Read           readFigures     `json:"read"`
	Milliseconds   stages          `json:"milliseconds"`
}

type rejection struct {
	Strategy string `json:"strategy"`
	Reason   string `json:"reason"`
	Why      string `json:"why"`
}

type param struct {
	Name  string `json:"name"`
	Value any    `json:"value"`
}

// A tableRead is what ClickHouse's indexes leave to read of a table or a projection.
type tableRead struct {
	Table string `json:"table"`
	Parts uint64 `json:"parts"`
	Marks uint64 `json:"marks"`
	Rows  uint64 `json:"rows"`
}

// The figures that ClickHouse reported of the statement. It reports the last two over the native protocol only.
type readFigures struct {
	Rows        uint64   `json:"rows"`
	Bytes       uint64   `json:"bytes"`
	AllRows     uint64   `json:"all_rows"` // with those of the facts
	PeakBytes   *uint64  `json:"peak_memory_bytes"`
	ProcessorMs *float64 `json:"processor_ms"`
}

// The stages of the last attempt. Total has earlier attempts too, and what was validated after the statement.
type stages struct {
	Facts      float64 `json:"facts"`
	ClickHouse float64 `json:"clickhouse"`
	Decoding   float64 `json:"decoding"` // with sending the statement and receiving its rows
	Total      float64 `json:"total"`
}

func shownExplanation(of schema.OrganizationID, q query.Query, x *olap.Explanation) explanation {
	shown := explanation{
		OrganizationID: string(of), Query: json.RawMessage(q.Canonical()), AsOf: instant(x.AsOf), Rows: x.Rows,
		Strategy: x.Strategy, Why: plan.Reason(x.Strategy.Reason).Meaning(), SQL: x.Statement.SQL, Plan: x.Plan,
		Rejected: []rejection{}, Params: []param{}, Tables: []tableRead{},
		Read: readFigures{Rows: x.Cost.Rows, Bytes: x.Cost.Bytes, AllRows: x.All.Rows, PeakBytes: x.Cost.PeakBytes},
		Milliseconds: stages{
			Facts: milliseconds(x.Facts), ClickHouse: milliseconds(x.Cost.Elapsed),
			Decoding: milliseconds(max(x.Execution-x.Cost.Elapsed, 0)), Total: milliseconds(x.Total),
		},
	}
	if x.Cost.Processor != nil {
		took := milliseconds(*x.Cost.Processor)
		shown.Read.ProcessorMs = &took
	}
	for _, r := range x.Rejected {
		shown.Rejected = append(shown.Rejected, rejection{r.Strategy.String(), string(r.Reason), r.Reason.Meaning()})
	}
	for _, p := range x.Statement.Params {
		shown.Params = append(shown.Params, param{p.Name, p.Value})
	}
	for _, e := range x.Estimates {
		shown.Tables = append(shown.Tables, tableRead{e.Table, e.Parts, e.Marks, e.Rows})
	}
	return shown
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func (x explanation) writeJSON(out io.Writer) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(x)
}

func (x explanation) writeText(out io.Writer) error {
	var text strings.Builder
	lines := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	line := func(name, format string, values ...any) {
		fmt.Fprintf(lines, "%s\t%s\n", name, fmt.Sprintf(format, values...))
	}
	line("query", "%s", x.Query)
	line("answer", "%s as of %s", plural(x.Rows, "row"), x.AsOf)
	line("strategy", "%s", x.strategy())
	for _, r := range x.Rejected {
		line("rejected", "%s (%s): %s", r.Strategy, r.Reason, r.Why)
	}
	line("read", "%d rows, %d bytes; %d rows with those of the facts", x.Read.Rows, x.Read.Bytes, x.Read.AllRows)
	for _, t := range x.Tables {
		line("table", "%s: %s, %s, %s", t.Table, plural(int(t.Parts), "part"), plural(int(t.Marks), "mark"),
			plural(int(t.Rows), "row"))
	}
	if x.Read.PeakBytes == nil {
		line("memory", "not reported over HTTP; ClickHouse's plan below may say")
	} else {
		line("memory", "%d bytes at most; %.3f ms of processor time", *x.Read.PeakBytes, *x.Read.ProcessorMs)
	}
	line("time", "%.3f ms: facts %.3f, ClickHouse %.3f, sending and decoding %.3f", x.Milliseconds.Total,
		x.Milliseconds.Facts, x.Milliseconds.ClickHouse, x.Milliseconds.Decoding)
	lines.Flush()
	fmt.Fprintf(&text, "\nSQL\n%s\n\nParameters\n", x.SQL)
	for _, p := range x.Params {
		value, err := json.Marshal(p.Value)
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%s = %s\n", p.Name, value)
	}
	fmt.Fprintf(&text, "\nClickHouse's plan\n%s\n", strings.Join(x.Plan, "\n"))
	_, err := io.WriteString(out, output.PrintableLines(text.String()))
	return err
}

// strategy is the chosen one in a line.
func (x explanation) strategy() string {
	s := x.Strategy
	text := s.Reads
	if s.Delta != "" {
		text += ", delta " + s.Delta
	}
	text += fmt.Sprintf(", page %s, attempt %d", s.Page, s.Attempt)
	if len(s.Refuted) > 0 {
		text += " after " + strings.Join(s.Refuted, ", ")
	}
	if s.Reason != "" {
		text += " (" + s.Reason + ")"
	}
	return text
}
