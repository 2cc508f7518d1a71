package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A result takes a line of the file, with the median and the number of measurements, to four digits.
func TestResultFile(t *testing.T) {
	r := newReport(command{Scale: 1})
	r.add(ratio("query", "totals", "naive", &stats{12.345678, 20, 5}, &stats{123456.7, 200000, 7}, 0.1),
		result{Scenario: "memory", Name: "peak, {of} [one]", Ours: &stats{3, 3, 1}})
	r.Costs = []questionCost{{Organization: "large", Runs: 123456, Ours: requestCost{Median: 1.23456, latency: &stats{}}}}
	file := filepath.Join(t.TempDir(), "folder", "results.json")
	if err := r.write(file); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var read report
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if len(read.Results) != 2 || *read.Results[0].Ours != (stats{12.35, 0, 5}) ||
		*read.Results[0].Reference != (stats{123500, 0, 7}) || read.Results[0].Measured != 0.0001 ||
		read.Results[1].Name != "peak, {of} [one]" || read.Costs[0].Runs != 123456 || read.Costs[0].Ours.Median != 1.235 {
		t.Errorf("read %+v, %+v of\n%s", read.Results, read.Costs, text)
	}
	for line := range strings.Lines(string(text)) {
		if n := strings.Count(line, `"scenario"`); n > 1 || n == 1 && !strings.Contains(line, `"measured"`) {
			t.Errorf("a line does not have one result: %s", line)
		}
	}
	if r.Results[0].Ours.Median != 12.345678 {
		t.Error("what was measured has changed")
	}
}
