package main

import (
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/runlens/runlens/cmd/internal/harness"
)

// A report is what a run saw; its JSON is the result file.
type report struct {
	Started    time.Time `json:"started"`
	Finished   time.Time `json:"finished"`
	Until      time.Time `json:"until"`
	Scale      float64   `json:"scale"`
	Platform   string    `json:"platform"`
	CPUs       int       `json:"cpus"`
	LoadBefore string    `json:"load_average_before,omitempty"`
	Engine     string    `json:"engine"`
	// OtherCores is how many CPUs other programs used during each scenario, where the system says: 0 on a quiet machine.
	OtherCores map[string]float64 `json:"other_cores"`
	// Seconds is how long the load and each scenario took.
	Seconds    map[string]float64 `json:"seconds"`
	Data       []tableData        `json:"data"`
	Results    []result           `json:"results"`
	Costs      []questionCost     `json:"costs"`
	Mismatches []string           `json:"mismatches"`
	Notes      harness.Notes      `json:"notes"`
}

type tableData struct {
	Table      string  `json:"table"`
	Rows       uint64  `json:"rows"`
	Parts      uint64  `json:"parts"`
	Partitions uint64  `json:"partitions"`
	Bytes      uint64  `json:"-"`
	MiB        float64 `json:"mib"`
}

// A result is one line of the table.
type result struct {
	Scenario  string  `json:"scenario"`
	Name      string  `json:"name"`
	Unit      string  `json:"unit"` // of ours and reference
	Ours      *stats  `json:"ours"`
	Against   string  `json:"against,omitempty"`
	Reference *stats  `json:"reference,omitempty"`
	Measured  float64 `json:"measured"` // what the goal is about: a ratio of medians, or a value
	Goal      string  `json:"goal,omitempty"`
	Met       *bool   `json:"met,omitempty"` // absent where there is no goal
	Note      string  `json:"note,omitempty"`
}

func newReport(c command) *report {
	load, _ := os.ReadFile("/proc/loadavg") // Linux only
	r := &report{
		Started: time.Now().UTC(), Until: c.Until, Scale: c.Scale, Platform: runtime.GOOS + "/" + runtime.GOARCH,
		CPUs: runtime.NumCPU(), LoadBefore: strings.TrimSpace(string(load)), OtherCores: map[string]float64{},
		Seconds: map[string]float64{}, Costs: []questionCost{},
		Mismatches: []string{}, Notes: harness.Notes{},
	}
	if c.Scale < 1 {
		r.Notes.Add("the goals are those of --scale 1: on fewer rows what every query costs anyway weighs more")
	}
	return r
}

// ratio is a result about the ratio of medians, which should be at most the bound.
func ratio(scenario, name, against string, ours, reference *stats, atMost float64) result {
	return comparison(scenario, name, against, ours, reference).atMost(atMost)
}

// comparison is a ratio of medians, in milliseconds, without a goal.
func comparison(scenario, name, against string, ours, reference *stats) result {
	r := result{Scenario: scenario, Name: name, Unit: "ms", Ours: ours, Against: against, Reference: reference}
	if reference.Median > 0 { // as a difference of times may not be
		r.Measured = ours.Median / reference.Median
	}
	return r
}

func (r result) named(name string) result {
	r.Name = name
	return r
}

func (r result) atMost(most float64) result {
	return r.goal(fmt.Sprintf("at most %.2f", most), r.Measured <= most)
}

func (r result) goal(text string, met bool) result {
	r.Goal, r.Met = text, &met
	return r
}

func (r *report) add(results ...result) { r.Results = append(r.Results, results...) }

// took notes how long a part took that began then.
func (r *report) took(part string, began time.Time) {
	r.Seconds[part] = math.Round(10*time.Since(began).Seconds()) / 10
}

// check compares an answer with the reference's and records a difference.
func (r *report) check(what string, ours, reference answer) {
	if difference := ours.difference(reference); difference != "" {
		r.Mismatches = append(r.Mismatches, what+": "+difference)
	}
}

// print shows the report as a table.
func (r *report) print(out io.Writer) {
	fmt.Fprintf(out, "scale %g, data until %s, %d CPUs, %s, ClickHouse %s, load average before %s\n\n",
		r.Scale, r.Until.Format(time.RFC3339), r.CPUs, r.Platform, r.Engine, r.LoadBefore)
	for _, t := range r.Data {
		fmt.Fprintf(out, "%-20s %11d rows, %4d parts in %d partitions, %.0f MiB\n", t.Table, t.Rows, t.Parts, t.Partitions,
			t.MiB)
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	scenario := ""
	for _, line := range r.grouped() {
		if line.Scenario != scenario {
			scenario = line.Scenario
			if cores, known := r.OtherCores[scenario]; known {
				fmt.Fprintf(table, "\n(other programs used %.2f of %d CPUs)", cores, r.CPUs)
			}
			fmt.Fprintf(table, "\n%s\tmedian\tp95\tagainst\tmedian\tp95\tunit\tn\tmeasured\tgoal\t\n", strings.ToUpper(scenario))
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%.3g\t%s\t%s\n", line.Name, line.Ours.columns(), line.Against,
			line.Reference.columns(), fmt.Sprintf("%s\t%d", line.Unit, line.Ours.Samples), line.Measured, line.Goal,
			line.verdict())
	}
	table.Flush()
	r.printCosts(out)
	fmt.Fprintln(out)
	for _, part := range slices.Sorted(maps.Keys(r.Seconds)) {
		fmt.Fprintf(out, "%s took %.1f s\n", part, r.Seconds[part])
	}
	r.Notes.Print(out)
	for _, mismatch := range r.Mismatches {
		fmt.Fprintln(out, "WRONG ANSWER:", mismatch)
	}
	if len(r.Results) > 0 && len(r.Mismatches) == 0 {
		fmt.Fprintln(out, "every compared answer equals its reference")
	}
}

// grouped are the results, those of a scenario one after the other.
func (r *report) grouped() (results []result) {
	var scenarios []string
	for _, line := range r.Results {
		if !slices.Contains(scenarios, line.Scenario) {
			scenarios = append(scenarios, line.Scenario)
		}
	}
	for _, s := range scenarios {
		for _, line := range r.Results {
			if line.Scenario == s {
				results = append(results, line)
			}
		}
	}
	return results
}

// printCosts shows what a request takes, beside what the naive SQL takes on merged tables.
func (r *report) printCosts(out io.Writer) {
	if len(r.Costs) == 0 {
		return
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\nA WARM REQUEST\tms\tengine ms\tserver ms\tstatements\trows read\tallocations\tKiB\t"+
		"merged naive ms\tengine ms\trows read")
	for _, c := range r.Costs {
		fmt.Fprintf(table, "%s, %d runs: %s\t%s\t%s\t%s\t%s\t%.0f\t%.0f\t%.0f\t%s\t%s\t%.0f\n", c.Organization, c.Runs,
			c.Question, number(c.Ours.Median), number(c.Ours.Engine), number(c.Ours.Server), number(c.Ours.Statements),
			c.Ours.RowsRead, c.Ours.Allocations, c.Ours.AllocatedKiB,
			number(c.Reference.Median), number(c.Reference.Engine), c.Reference.RowsRead)
	}
	table.Flush()
}

func (r result) verdict() string {
	text := r.Note
	if r.Met != nil {
		text = strings.TrimSpace(harness.Verdict(*r.Met) + " " + text)
	}
	return text
}

// columns are median and 95th percentile, or nothing.
func (s *stats) columns() string {
	if s == nil {
		return "\t"
	}
	return number(s.Median) + "\t" + number(s.P95)
}

func number(n float64) string {
	switch {
	case n >= 1000:
		return fmt.Sprintf("%.0f", n)
	case n >= 10:
		return fmt.Sprintf("%.1f", n)
	default:
		return fmt.Sprintf("%.2f", n)
	}
}
