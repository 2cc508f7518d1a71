package main

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runlens/runlens/cmd/internal/console"
)

// runsOn are records of runs of one person on a day, all of which ended as a status says. Their ids begin at first.
func runsOn(organization, day, status string, first, count int) (records []string) {
	for n := range count {
		records = append(records, fmt.Sprintf(`{"record":"run","organization_id":"%s",`+
			`"run_id":"0b7e4d2c-9f3a-4c61-8a55-%012d","agent_id":"`+agentOfDesk+`","status":"%s",`+
			`"initiator_identifier":"eve@x.example","initiator_type":"internal",`+
			`"created_at":"%sT12:00:00Z","updated_at":"2026-06-01T09:31:00Z"}`, organization, first+n, status, day))
	}
	return records
}

// A rate near none or all does not read as none or all, and is the same text in a tile, a table, a list and a tip.
func consoleRates(t *testing.T, o office) {
	t.Parallel()
	d := o.console(t, "rates", console.Config{})
	var records []string
	for n, c := range []struct {
		day, status string
		count       int
	}{
		{"2026-01-02", "COMPLETED", 2499}, {"2026-01-02", "FAILED", 1}, // 0.9996
		{"2026-01-03", "COMPLETED", 1}, {"2026-01-03", "FAILED", 2499}, // 0.0004
		{"2026-01-04", "COMPLETED", 1}, {"2026-01-04", "FAILED", 15}, // 0.0625
		{"2026-01-07", "CANCELLED", 1}, // none
	} {
		records = append(records, runsOn("rates", c.day, c.status, 10_000*(n+1), c.count)...)
	}
	o.stored(t, "rates", records...)
	d.open(d.base + "/explore?metrics=run_success_rate&dimensions=day&start=2026-01-01&end=2026-01-08")
	d.rows("2 Jan 2026 | 99.96%", "3 Jan 2026 | 0.04%", "4 Jan 2026 | 6.3%", "5 Jan 2026 | 66.7%", "6 Jan 2026 | 100%",
		"7 Jan 2026 | –", "8 Jan 2026 | 66.7%")
	for day, tip := range map[int]string{1: "2 Jan 2026 success rate 99.96%", 2: "3 Jan 2026 success rate 0.04%",
		3: "4 Jan 2026 success rate 6.3%"} {
		d.point(".u-over", float64(day)/7)
		d.shows(".tip", tip)
	}
	d.point(".u-over", 6.0/7)
	if got := d.text(`document.querySelector(".tip").hidden`); got != "true" {
		t.Errorf("a day without ended runs has a tip: %s", d.text(`document.querySelector(".tip").innerText`))
	}
	d.open(d.base + "/explore?metrics=run_success_rate&dimensions=user_identifier&start=2026-01-02&end=2026-01-02")
	d.shows(".tile.drawn", "Success rate 99.96%")
	d.shows("[aria-labelledby=by-user_identifier] tbody tr", "eve@x.example 99.96%")
	d.shows("svg.bars g", "eve@x.example 99.96%")
}

// A caption and a tip name the days whose numbers they have: a comparison leaves today out, and a week that is over is
// counted in part where the range begins within it.
func consolePeriods(t *testing.T, o office) {
	t.Parallel()
	d := o.console(t, "periods", console.Config{})
	const compared = "&start=2026-01-05&end=2026-01-15&compare=previous"
	d.open(d.base + "/explore?metrics=run_count&dimensions=user_identifier" + compared)
	d.shows("figcaption", "Runs for each person from 5 Jan 2026 to 14 Jan 2026 in UTC")
	d.shows(".notes", "In the order of a metric, what only the earlier period has is left out")
	d.open(d.base + "/explore?metrics=run_count&grain=week&start=2026-01-07&end=2026-01-15&compare=previous")
	d.shows("figcaption", "Runs per week from 7 Jan 2026 to 14 Jan 2026 in UTC")
	// One run is of the 15th.
	d.rows("5 Jan 2026 in part | 4 | 0 | +4 | –", "12 Jan 2026 not over | 0 | 4 | −4 | −100.0%")
	for part, tip := range map[float64]string{0.05: "7 Jan 2026 to 11 Jan 2026, in part runs 4 runs, before 0",
		0.95: "12 Jan 2026 to 14 Jan 2026, not over runs, before 4 runs 0"} {
		d.point(".u-over", part)
		d.shows(".tip", tip)
	}
	d.open(d.base + "/explore?metrics=run_count&dimensions=user_identifier&dimensions=day&last=11d&top=2")
	d.shows("figcaption", "for each person from 5 Jan 2026 to 15 Jan 2026 in UTC, the 2 groups with the most runs.")
}

// The command that is copied for curl asks for one page, and says so where the page has the rows of several.
func consoleLongCopies(t *testing.T, o office) {
	t.Parallel()
	d := o.console(t, "long-copies", console.Config{})
	var records []string
	for n := range 50 * 11 {
		run := runsOn("long-copies", fmt.Sprintf("2026-01-%02d", 2+n%11), "COMPLETED", 10_000+n, 1)[0]
		records = append(records, strings.ReplaceAll(run, "eve@", fmt.Sprintf("eve%d@", n/11)))
	}
	o.stored(t, "long-copies", records...)
	for groups, want := range map[string]string{
		"40": "", // of 11 days each
		"50": "curl: This asks for the first 500 rows. The cursor of an answer asks for the next ones.",
	} {
		d.open(d.base + "/explore?metrics=run_count&dimensions=user_identifier&dimensions=day&last=15d&top=" + groups)
		if got := d.text(`[...document.querySelectorAll(".copy:has(p)")].map((e) => e.querySelector("h3").textContent + ": " +
			e.querySelector("p").textContent).join("; ")`); got != want {
			t.Errorf("of %s groups it says %q", groups, got)
		}
	}
}

// A page of a dashboard that stays open never has numbers under another panel's title, nor those of other days than it
// says: it is opened again when its file was changed, and on the next day.
func consoleStaysOpen(t *testing.T, o office) {
	t.Parallel()
	var later atomic.Int64
	file := filepath.Join(t.TempDir(), "wall.yaml")
	write := func(panels string) {
		// There it is 23:45.
		content := "title: Wall\nlast: 11d\nrefresh: 1h\ntimezone: Australia/Eucla\npanels:\n" + panels
		must(t, os.WriteFile(file, []byte(content), 0o600))
	}
	const (
		failures = "- title: Failures of all\n  question: {metrics: [failed_run_count], dimensions: [day]}\n"
		runs     = "- title: Runs of all\n  question: {metrics: [run_count], dimensions: [day]}\n"
	)
	write(failures)
	d := o.console(t, "wall", console.Config{Dashboards: []string{file},
		Now: func() time.Time { return consoleNow.Add(time.Duration(later.Load())) }})
	d.open(d.base + "/dashboard?file=" + url.QueryEscape(file))
	again := func() {
		d.text(`window.openedBefore = true; htmx.trigger("#panel-0", "again"); 0`)
		d.until(`window.openedBefore === undefined`) // the page was opened again
		d.rest()
	}
	d.shows("#panel-0 .tile", "Failures 2 not over yet")
	write(runs + failures)
	again()
	d.shows("#panel-0-title", "Runs of all")
	d.shows("#panel-0 .tile", "Runs 9 not over yet")
	d.shows(".board > .about", "All panels are about 5 Jan 2026 to 15 Jan 2026 in Australia/Eucla")
	later.Store(int64(30 * time.Minute))
	again()
	d.shows(".board > .about", "All panels are about 6 Jan 2026 to 16 Jan 2026 in Australia/Eucla")
	d.shows("#panel-0 .tile", "Runs 6 not over yet")
	d.text(`window.openedBefore = true; htmx.trigger("#panel-0", "again"); 0`)
	d.rest()
	if d.text(`window.openedBefore`) != "true" {
		t.Error("a page that says what is shown was opened again")
	}
	write("")
	again()
	d.shows("h1", "wall has a fault")
}
