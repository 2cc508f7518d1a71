package main

import (
	"strings"
	"testing"

	"github.com/runlens/runlens/cmd/internal/console"
)

// Every control changes the answer and the address; back leads back.
func consoleExplorer(t *testing.T, o office) {
	t.Parallel()
	d := o.console(t, "explorer", console.Config{})
	d.open(d.base + "/explore?metrics=run_count&dimensions=day")
	d.shows(".tile", "Runs 10 not over yet")
	d.shows("figcaption", "Runs per day from 17 Dec 2025 to 15 Jan 2026 in UTC.")
	d.rows("29 Dec 2025 | 1", "5 Jan 2026 | 3", "6 Jan 2026 | 1", "8 Jan 2026 | 4", "15 Jan 2026 not over | 1")
	if got := d.text(`document.querySelector("[data-chart] canvas") !== null`); got != "true" {
		t.Error("no chart is drawn")
	}
	d.shows(".asof", "As of ")

	d.click("#metric-unique_initiator_count")
	d.shows(".tile.drawn", "People 3 not over yet") // not 1+2+1+2+1
	d.open(d.base + "/explore?metrics=run_count&metrics=unique_initiator_count&dimensions=day")
	d.choose("#over", "week")
	d.rows("15 Dec 2025 in part | 0 | 0", "22 Dec 2025 | 0 | 0", "29 Dec 2025 | 1 | 1", "5 Jan 2026 | 8 | 3",
		"12 Jan 2026 not over | 1 | 1")
	d.shows(".notes", "The week of 15 Dec 2025 is counted in part: 17 Dec 2025 to 21 Dec 2025.")
	d.choose("#over", "none")
	d.rows() // totals only
	d.shows(".tile", "Runs 10")
	d.open(d.base + "/explore?metrics=run_count&metrics=unique_initiator_count&dimensions=user_identifier")
	d.click("#rows > summary")
	d.rows("ada@x.example | – | 5 | 1", "bo@x.example | – | 3 | 1", "+15550100004 | – | 2 | 1")
	d.shows("svg.bars g", "ada@x.example 5")
	if d.text(`document.querySelector(".table th:nth-child(4) .mark").innerText`) != "not additive" {
		t.Error("a distinct count is not marked in the table")
	}
	d.click(".table th:nth-child(1) a")
	d.rows("+15550100004 | – | 2 | 1", "ada@x.example | – | 5 | 1", "bo@x.example | – | 3 | 1")
	d.click("th[aria-sort=ascending] a")
	d.rows("bo@x.example | – | 3 | 1", "ada@x.example | – | 5 | 1", "+15550100004 | – | 2 | 1")
	address := d.text("location.href")
	d.text("history.back()")
	d.until(`document.querySelector(".table th:nth-child(1)")?.ariaSort === "ascending"`)
	d.rest()
	d.rows("+15550100004 | – | 2 | 1", "ada@x.example | – | 5 | 1", "bo@x.example | – | 3 | 1")
	d.open(address)
	d.rows("bo@x.example | – | 3 | 1", "ada@x.example | – | 5 | 1", "+15550100004 | – | 2 | 1")

	d.click("#rows > summary")
	d.choose("#compare", "previous") // 17 December to 14 January, after 17 November to 15 December
	d.click("#sort-run_count_difference")
	d.shows("th[aria-sort=descending]", "Runs change")
	d.choose("#compare", "")
	d.choose("#period", "last=7d")
	d.rows("ada@x.example | – | 1 | 1")
	d.choose("#start", "2026-01-14")
	d.choose("#end", "2026-01-14")
	d.shows(".tile", "Runs 0")
	if got := d.text("location.search"); !strings.Contains(got, "&start=2026-01-14") ||
		!strings.Contains(got, "&end=2026-01-14") {
		t.Errorf("the address is %s", got)
	}
	d.click(".table th:nth-child(1) a")
	if got := d.text("document.activeElement.id + '; ' + document.getElementById('said').innerText"); !strings.HasPrefix(
		got, "sort-user_identifier; As of ") {
		t.Errorf("after a click the focus and what is said are %s", got)
	}
	// The afternoon in UTC is the next day in Auckland.
	d.choose("#period", "today=true")
	d.choose("#timezone", "Pacific/Auckland")
	d.shows(".empty", "Nothing was counted on 16 Jan 2026.")
	d.click("#more > summary")
	d.click("#my-zone")
	d.shows("figcaption", "on 15 Jan 2026 in Europe/Stockholm")
	d.choose("#model", "agent_user_activity")
	d.shows(".tile", "Interactions 0")
}

// A row, a bar and a stretch of the chart narrow the question; crumbs lead back, one step each.
func consoleNarrowing(t *testing.T, o office) {
	t.Parallel()
	d := o.console(t, "narrowing", console.Config{})
	d.open(d.base + "/explore?metrics=run_count&dimensions=day")
	d.click("#draw-agent_id")
	d.shows("figcaption", "Runs per day for each agent")
	// The days from 5 to 8 January are at 19 to 22 of 29 steps.
	d.point(".u-over", 19.0/29)
	d.shows(".tip", "5 Jan 2026 Billing desk 3")
	d.drag(".u-over", 18.8/29, 22.2/29)
	d.shows(".tile", "Runs 8")
	d.shows(".crumbs", "last 30 days 5 Jan 2026 to 8 Jan 2026")
	d.rows(agentOfDesk+" | Billing desk | 5 Jan 2026 | 3", agentOfDesk+" | Billing desk | 6 Jan 2026 | 1",
		agentOfDesk+" | Billing desk | 8 Jan 2026 | 4")
	d.click("#rows > summary")
	d.click(".table tr:nth-child(3) td:nth-child(3) a")
	d.shows(".tile", "Runs 4")
	d.click("#draw-user_identifier")
	d.choose("#over", "none")
	d.rows("+15550100004 | – | 2", "bo@x.example | – | 2")
	d.click("svg.bars g:nth-child(2) a")
	d.shows(".tile", "Runs 2")
	d.shows(".chips", "person bo@x.example")
	d.shows("figcaption", "only where person is bo@x.example")
	d.click(".chips a")
	d.shows(".tile", "Runs 4")
	d.click("[aria-labelledby=by-agent_id] tbody a")
	d.shows(".chips", "agent Billing desk")

	// In a chart of bars a bar is its period.
	d.open(d.base + "/explore?metrics=run_count&dimensions=day&last=30d&chart=bar")
	d.drag(".u-over", 22.5/30, 22.5/30) // 8 January is the 23rd of 30 days
	d.shows(".crumbs", "last 30 days 8 Jan 2026")
	d.shows(".tile", "Runs 4")
	d.choose("#chart", "line")
	d.shows(".crumbs", "last 30 days 8 Jan 2026")

	// A filter is chosen among the values that there are; a name stands for its identifier.
	d.click("#add > summary")
	d.do(focus("#filter-member"))
	d.rest()
	d.until(`[...document.querySelectorAll("#suggested option")].some((o) => o.label === "Billing desk")`)
	d.do(typed("#filter-value", "Billing desk\r"))
	d.until(`document.querySelector(".chips")?.innerText.includes("Billing")`)
	d.rest()
	d.shows(".chips", "agent Billing desk")
	if got := d.text("document.activeElement.id"); got != "answer" { // and not what the next Tab would begin again from
		t.Errorf("after Enter the focus is at %q", got)
	}
	if got := d.text(`document.querySelector("input[name=filter]").value`); got != "agent_id="+agentOfDesk {
		t.Errorf("the filter is %s", got)
	}
	d.shows(".tile", "Runs 4")
	for value, runs := range map[string]string{"ada@x.example": "0", "bo@x.example": "2"} {
		d.choose("#filter-member", "user_identifier")
		d.choose("#filter-value", value)
		d.shows(".tile", "Runs "+runs)
		d.shows(".chips", "person "+value)
		d.click("[aria-label^='Remove the filter person']")
	}
}
