package main

import (
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/cmd/internal/console"
)

// The first page answers at once, about the days of the browser's zone until the last whole one. Another metric and
// another order ask nothing.
func consoleFirst(t *testing.T, o office) {
	t.Parallel()
	d := o.console(t, "first", console.Config{})
	d.shows("h1", "Explore")
	// 12 November to 10 December, the same weekdays five weeks before, had none. The run of 15 January is of today.
	d.shows(".tile", "Runs 9 ▲ +9 better was 0 | Completed runs 6")
	d.shows(".tile", "Failures 2 ▲ +2 worse was 0")
	d.shows("#answer > .about", "Compared until 14 Jan 2026: today is not over.")
	if got := d.text("document.activeElement.tagName"); got != "BODY" {
		t.Errorf("the first page has the focus at %s, so that Tab goes past everything before it", got)
	}
	d.shows("figcaption", "Runs per day from 17 Dec 2025 to 15 Jan 2026 in Europe/Stockholm, compared with")
	if got := d.text("location.search"); !strings.Contains(got, "timezone=Europe%2FStockholm") {
		t.Errorf("the address is %s", got)
	}
	const people = "[aria-labelledby=by-user_identifier] "
	d.shows(people+"table",
		"ada@x.example 4 ▲ +4 better bo@x.example 3 ▲ +3 better +15550100004 2 ▲ +2 better All 9")
	d.shows("[aria-labelledby=by-agent_id] tbody", "Billing desk 9")
	if got := d.text(`document.querySelector("[aria-labelledby=by-agent_id] tbody").innerText`); strings.Contains(got,
		agentOfDesk) {
		t.Errorf("an agent is shown as %s", got)
	}
	// The catalog, then totals, days and three dimensions, each with what it is compared with.
	asked := d.asked.Load()
	if asked != 11 {
		t.Errorf("the first page takes %d requests", asked)
	}
	d.click("#metric-failed_run_count")
	d.shows(".tile.drawn", "Failures 2")
	d.shows("figcaption", "Failures per day")
	d.shows(people+"tbody", "ada@x.example 1 ▲ +1 worse bo@x.example 1 ▲ +1 worse")
	d.click("#change-user_identifier")
	if got := d.text("document.activeElement.id"); got != "change-user_identifier" {
		t.Errorf("after a click the focus is at %s", got)
	}
	d.click("#metric-run_count")
	d.click("#lowest-user_identifier")
	d.shows(people+"tbody", "+15550100004 2 ▲ +2 better bo@x.example 3 ▲ +3 better ada@x.example 4")
	if again := d.asked.Load() - asked; again != 0 {
		t.Errorf("another metric and another order took %d requests", again)
	}
	// The zone that was chosen is remembered.
	d.choose("#timezone", "Pacific/Auckland")
	d.open(d.base + "/explore")
	d.shows("figcaption", "in Pacific/Auckland")

	// From 9 to 15 January with today left out, and from 2 to 8 January with the 8th left out: 0 after 4, not 1 after 8.
	d.open(d.base + "/explore?metrics=run_count&dimensions=user_identifier&dimensions=day&last=7d&compare=previous")
	d.shows(".tile", "Runs 0 ▼ −100.0% worse was 4")
	d.shows(people+"tbody", "ada@x.example 0 ▼ −100.0% worse bo@x.example 0 ▼ −100.0% worse")
	d.until(`document.querySelector("[data-chart] canvas") !== null`) // ada's run of today is drawn
	d.open(d.base + "/explore?metrics=run_count&dimensions=day&start=2020-01-01&end=2020-01-02" +
		"&filter=user_type%3Dexternal")
	d.shows(".empty", "Nothing was counted from 1 Jan 2020 to 2 Jan 2020 with these filters. Try Without filters, "+
		"Last 30 days, Last 90 days, Last 366 days.")
	d.until(`!document.querySelector(".empty").textContent.includes("runlens")`) // the filters may be why
	d.open(d.base + "/explore?metrics=run_count&dimensions=day&start=2020-01-01&end=2020-01-30")
	d.shows(".empty", "Last 366 days. If there are no records yet, copy some: runlens ingest and runlens worker do.")
	d.open(d.base + "/explore?metrics=run_count&grain=week&last=366d&compare=year")
	d.shows(".offer", "By week this takes 10")
	d.click(".offer a")
	d.shows("figcaption", "Runs per month")
	if got := d.text(`refused.join("; ")`); got != "" {
		t.Error(got)
	}
}

// On the first day with runs there is nothing to compare, and a comparison leaves that day out: the first page has it,
// and another page says how to see it.
func consoleFirstDay(t *testing.T, o office) {
	t.Parallel()
	firstDay := time.Date(2025, 12, 29, 15, 0, 0, 0, time.UTC)
	d := o.console(t, "first-day", console.Config{Now: func() time.Time { return firstDay }})
	d.shows(".tile", "Runs 1 not over yet | Completed runs 1 not over yet")
	d.until(`document.getElementById("compare").value === ""`)
	d.shows("[aria-labelledby=by-agent_id] tbody", "Billing desk 1")
	const compared = "/explore?metrics=run_count&dimensions=day&last=7d&compare=previous"
	d.open(d.base + compared)
	d.shows(".empty", "Nothing was counted from 23 Dec 2025 to 28 Dec 2025. Try With today, not compared, Last 30 days,")
	d.click(".empty a")
	d.shows(".tile", "Runs 1 not over yet")
	d.open(d.base + compared + "&filter=user_identifier%3Dbo@x.example")
	d.shows(".empty", "Nothing was counted from 23 Dec 2025 to 28 Dec 2025 with these filters. Try Without filters, Last")
}
