package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// markdown is what deploy/speed.md says of a run: how it was measured and three tables.
func (r *report) markdown() string {
	var text strings.Builder
	write := func(format string, args ...any) { fmt.Fprintf(&text, format+"\n", args...) }
	write("One run on %s at `BENCH_SCALE=%g`, with %d CPUs and ClickHouse %s. Medians in milliseconds,",
		r.Started.Format(time.DateOnly), r.Scale, r.CPUs, r.Engine)
	write("end to end over HTTP. *Expert* is the SQL that an expert would write first; *merged* is the same on tables\n" +
		"whose partitions are one part each, as where nothing arrives any more.\n")
	if r.Scale < 1 {
		write("The goals are those of `BENCH_SCALE=1`.\n")
	}
	r.writeQuestions(write)
	r.writeSizes(write)
	r.writeOthers(write)
	return strings.TrimSpace(text.String()) + "\n"
}

// writeQuestions writes a row for each question of the large organization.
func (r *report) writeQuestions(write func(string, ...any)) {
	var rows []string
	var runs uint64
	for _, c := range r.Costs {
		i := slices.IndexFunc(r.Results, func(of result) bool { return of.Scenario == "query" && of.Name == c.Question })
		if c.Organization != "large" || i < 0 {
			continue
		}
		runs = c.Runs
		q := r.Results[i]
		rows = append(rows, fmt.Sprintf("| %s | %s | %s | %.2f | %s | %.2f |", c.Question, figure(q.Ours.Median),
			figure(q.Reference.Median), q.Measured, figure(c.Reference.Median), c.Ours.Median/c.Reference.Median))
	}
	if rows == nil {
		return
	}
	write("| question of %s runs | runlens | expert | ratio | merged | ratio |\n|---|--:|--:|--:|--:|--:|\n%s\n",
		figure(float64(runs)), strings.Join(rows, "\n"))
}

// writeSizes writes a row for each organization that was measured against merged tables.
func (r *report) writeSizes(write func(string, ...any)) {
	if len(r.Costs) == 0 {
		return
	}
	write("All questions of an organization against *merged*, and what a request takes that was answered before:\n")
	write("| runs | runlens | ratio | worst ratio | processor time, ratio | most statements | allocations of server |\n" +
		"|--:|--:|--:|--:|--:|--:|--:|")
	for first := 0; first < len(r.Costs); {
		c := r.Costs[first]
		same := slices.IndexFunc(r.Costs[first:], func(o questionCost) bool { return o.Organization != c.Organization })
		if same < 0 {
			same = len(r.Costs) - first
		}
		write("%s", sizeRow(r.Costs[first:first+same]))
		first += same
	}
	write("")
}

// classNotes say of classes of one size in which way they are answered.
var classNotes = map[string]string{"below": "below the threshold", "above": "as if above it"}

// sizeRow sums up the questions of an organization.
func sizeRow(costs []questionCost) string {
	var latencies, ratios, allocations []float64
	var ours, reference, statements float64
	for _, c := range costs {
		latencies = append(latencies, c.Ours.Median)
		ratios = append(ratios, c.Ours.Median/c.Reference.Median)
		allocations = append(allocations, c.Ours.Allocations)
		ours, reference = ours+c.Ours.Engine+c.Ours.Server, reference+c.Reference.Engine+c.Reference.Server
		statements = max(statements, c.Ours.Statements)
	}
	runs := figure(float64(costs[0].Runs))
	if note := classNotes[costs[0].Organization]; note != "" {
		runs += ", " + note
	}
	return fmt.Sprintf("| %s | %s | %.2f | %.2f | %.2f | %.3g | %s |", runs, figure(statsOf(latencies).Median),
		statsOf(ratios).Median, slices.Max(ratios), ours/reference, statements, figure(statsOf(allocations).Median))
}

// writeOthers writes a row for each result that sums something up.
func (r *report) writeOthers(write func(string, ...any)) {
	var rows []string
	for _, s := range r.Results {
		switch s.Scenario {
		case "clients", "postgres", "ingest":
		case "cold", "repeated", "arrivals":
			if s.Unit == "ms" { // one question of many
				continue
			}
		default:
			continue
		}
		reference := ""
		if s.Reference != nil {
			reference = figure(s.Reference.Median) + " (" + s.Against + ")"
		}
		s.Note = ""
		rows = append(rows, fmt.Sprintf("| %s: %s, %s | %s | %s | %.2f | %s, %s |", s.Scenario, s.Name, s.Unit,
			figure(s.Ours.Median), reference, s.Measured, s.Goal, s.verdict()))
	}
	if rows != nil {
		write("| what | runlens | reference | measured | goal |\n|---|--:|--:|--:|---|\n%s", strings.Join(rows, "\n"))
	}
}

// figure prints a number for people, with commas between thousands.
func figure(n float64) string {
	if n < 10 {
		return fmt.Sprintf("%.2f", n)
	}
	text := fmt.Sprintf("%.0f", n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
