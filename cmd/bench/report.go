package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"
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
	Data       []tableData        `json:"data"`
	Results    []result           `json:"results"`
	Mismatches []string           `json:"mismatches"`
	Notes      []string           `json:"notes"`
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
		Mismatches: []string{}, Notes: []string{},
	}
	if c.Scale < 1 {
		r.note("the goals are those of --scale 1: on fewer rows what every query costs anyway weighs more")
	}
	return r
}

// ratio is a result about the ratio of medians, which should be at most the bound.
func ratio(scenario, name, against string, ours, reference *stats, atMost float64) result {
	r := result{Scenario: scenario, Name: name, Unit: "ms", Ours: ours, Against: against, Reference: reference}
	r.Measured = ours.Median / reference.Median
	return r.goal(fmt.Sprintf("at most %.2f", atMost), r.Measured <= atMost)
}

func (r result) goal(text string, met bool) result {
	r.Goal, r.Met = text, &met
	return r
}

func (r *report) add(results ...result) { r.Results = append(r.Results, results...) }

func (r *report) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// check compares an answer with the reference's and records a difference.
func (r *report) check(what string, ours, reference answer) {
	if difference := ours.difference(reference); difference != "" {
		r.Mismatches = append(r.Mismatches, what+": "+difference)
	}
}

// write puts the report as JSON into the file.
func (r *report) write(file string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
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
	for _, line := range r.Results {
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
	fmt.Fprintln(out)
	for _, note := range r.Notes {
		fmt.Fprintln(out, "note:", note)
	}
	for _, mismatch := range r.Mismatches {
		fmt.Fprintln(out, "WRONG ANSWER:", mismatch)
	}
	if len(r.Results) > 0 && len(r.Mismatches) == 0 {
		fmt.Fprintln(out, "every compared answer equals its reference")
	}
}

func (r result) verdict() string {
	text := r.Note
	if r.Met != nil {
		verdict := "met"
		if !*r.Met {
			verdict = "MISSED"
		}
		text = strings.TrimSpace(verdict + " " + text)
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
