package main

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/runlens/runlens/ingest"
)

// An ingestSummary is what --json prints: the counts of the whole backfill, those of earlier runs that it
// continued included.
type ingestSummary struct {
	Read      int64   `json:"read"`
	Stored    stored  `json:"stored"`
	Rejected  int64   `json:"rejected"`
	Anonymous int64   `json:"anonymous,omitzero"` // runs stored without the initiator, who was purged
	Resumed   int64   `json:"resumed"`            // of read, by earlier runs
	DryRun    bool    `json:"dry_run"`
	Complete  bool    `json:"complete"`
	Seconds   float64 `json:"seconds"`
	PerSecond float64 `json:"records_per_second"`
}

type stored struct {
	Agents       int64 `json:"agents"`
	Runs         int64 `json:"runs"`
	Attributions int64 `json:"attributions"`
}

func (c ingestCmd) print(out io.Writer, s, before ingest.Summary, took time.Duration, failure error) error {
	seconds := took.Seconds()
	summary := ingestSummary{
		Read: s.Read, Stored: stored{s.Agents, s.Runs, s.Attributions}, Rejected: s.Rejected, Resumed: before.Read,
		Anonymous: s.Anonymous, DryRun: c.DryRun, Complete: failure == nil, Seconds: seconds,
		PerSecond: float64(s.Read-before.Read) / max(seconds, 0.001),
	}
	if c.JSON {
		return json.NewEncoder(out).Encode(summary)
	}
	verb := "stored"
	if c.DryRun {
		verb = "valid"
	}
	anonymous := ""
	if s.Anonymous > 0 {
		anonymous = fmt.Sprintf(" (%d without the initiator, who was purged)", s.Anonymous)
	}
	_, err := fmt.Fprintf(out, "read %d, %s: agents %d, runs %d%s, attributions %d, rejected %d, %.1f s, %.0f records/s\n",
		s.Read, verb, s.Agents, s.Runs, anonymous, s.Attributions, s.Rejected, seconds, summary.PerSecond)
	return err
}
