package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/olap/clickhouse/clickhousetest"
	"github.com/runlens/runlens/olap/clickhouse/clickhousetest/memory"
	"github.com/runlens/runlens/olap/olaptest"
)

func TestMain(m *testing.M) {
	runInfileChild()
	os.Exit(m.Run())
}

// Every scenario, with -short one of them, on few rows and regardless of speed: all answers must equal their
// references.
func TestBench(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "runlens")
	if out, err := exec.Command("go", "build", "-ldflags=-w", "-o", binary, "../runlens").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var ofRows, ofFiles []string
	for _, s := range olaptest.Some(len(scenarios), scenarios...) {
		if s.rows {
			ofRows = append(ofRows, s.name)
		} else {
			ofFiles = append(ofFiles, s.name)
		}
	}
	t.Run("rows", func(t *testing.T) {
		if t.Parallel(); ofRows == nil { // of none all would be measured
			return
		}
		written := measured(t, binary, ofRows)
		for _, table := range written.Data {
			if table.Rows < 5000 {
				t.Errorf("%+v: want at least the large organization's 5,000 rows", table)
			}
		}
		if slices.Contains(ofRows, "sizes") {
			checkCosts(t, written)
		}
	})
	t.Run("files", func(t *testing.T) {
		if t.Parallel(); ofFiles != nil {
			measured(t, binary, ofFiles)
		}
	})
}

// checkCosts checks what is known of costs beforehand: totals of a small organization are one statement, which reads
// its rows once.
func checkCosts(t *testing.T, written report) {
	organizations := map[string]bool{}
	for _, c := range written.Costs {
		organizations[c.Organization] = true
		if c.Ours.Statements < 1 || c.Ours.RowsRead < 1 || c.Reference.Statements != 1 || c.Reference.RowsRead < 1 {
			t.Errorf("%s, %s: read nothing: %+v, %+v", c.Organization, c.Question, c.Ours, c.Reference)
		}
		if c.Organization == "tiny" && c.Question == "additive, totals, 30 days" &&
			(c.Ours.Statements != 1 || c.Ours.Allocations == 0) {
			t.Errorf("totals: %+v, want one statement, and allocations", c.Ours)
		}
	}
	if len(organizations) != 8 {
		t.Errorf("costs of %v, want 8 sizes", organizations)
	}
}

// measured runs the scenarios and returns the report as it was written.
func measured(t *testing.T, binary string, only []string) report {
	dir := t.TempDir()
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	c := command{
		Scale: 0.0005, Only: only, JSON: filepath.Join(dir, "bench.json"), Dir: filepath.Join(memory.TempDir(t), "data"),
		Until:  time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC),
		Repeat: 1, Budget: time.Nanosecond, Window: 100 * time.Millisecond, Rate: 100, Rounds: 1, Share: 0.9,
		Runlens: binary, Before: binary, EngineLib: clickhousetest.Library(),
	}
	if err := c.run(context.Background(), log, log); err != nil {
		text, _ := os.ReadFile(log.Name())
		t.Fatalf("%v\n%s", err, text)
	}
	var written report
	text, err := os.ReadFile(c.JSON)
	if err == nil {
		err = json.Unmarshal(text, &written)
	}
	if err != nil {
		t.Fatal(err)
	}
	results := map[string]int{}
	for _, r := range written.Results {
		results[r.Scenario]++
		if r.Ours == nil || r.Ours.Samples == 0 {
			t.Errorf("%s, %s: nothing measured", r.Scenario, r.Name)
		}
	}
	for _, name := range only {
		if _, timed := written.Seconds[name]; results[name] == 0 || !timed {
			t.Errorf("no result of the scenario %s, or no time: %v", name, written.Seconds)
		}
	}
	if _, err := os.Stat(c.Dir); !os.IsNotExist(err) {
		t.Errorf("the run's data is still there: %v", err)
	}
	return written
}

func TestDifference(t *testing.T) {
	reference := answer{{`"a"`, "1"}, {nullCell, "2"}}
	for _, c := range []struct {
		name string
		ours answer
		want string
	}{
		{"equal", answer{{`"a"`, "1"}, {nullCell, "2"}}, ""},
		{"another value", answer{{`"a"`, "1"}, {nullCell, "3"}}, "row 1"},
		{"null is no text", answer{{`"a"`, "1"}, {`"null"`, "2"}}, "row 1"},
		{"a row less", answer{{`"a"`, "1"}}, "1 rows, the reference has 2"},
		{"another order", answer{{nullCell, "2"}, {`"a"`, "1"}}, "row 0"},
	} {
		if got := c.ours.difference(reference); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestStats(t *testing.T) {
	if got := numbers(statsOf([]float64{3, 1, 2})); got != [3]float64{2, 3, 3} {
		t.Errorf("of three: %+v", got)
	}
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(100 - i)
	}
	if got := numbers(statsOf(hundred)); got != [3]float64{50.5, 95, 100} {
		t.Errorf("of a hundred: %+v", got)
	}
	if got := numbers(relative([][]float64{{2, 8}, {5}}, [][]float64{{1, 2, 3}, {10}})); got != [3]float64{1, 4, 3} {
		t.Errorf("relative: %+v", got)
	}
}

// numbers are the median, the 95th percentile and the number of measurements.
func numbers(s *stats) [3]float64 { return [3]float64{s.Median, s.P95, float64(s.Samples)} }

func TestUnknownScenarioIsRefused(t *testing.T) {
	c := command{Scale: 1, Repeat: 1, Rate: 20, Rounds: 1, Window: 1, Only: []string{"query", "speed"}}
	if err := c.complete(); err == nil || !strings.Contains(err.Error(), `"speed"`) {
		t.Errorf("error %v", err)
	}
}
