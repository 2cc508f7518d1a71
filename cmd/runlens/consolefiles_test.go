package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runlens/runlens/cmd/internal/console"
)

// What is copied and downloaded gives the numbers of the page.
func consoleCopies(t *testing.T, o office) {
	d := o.console(t, "copies", console.Config{})
	d.desk.use(t)
	d.open(d.base + "/explore?metrics=run_count&dimensions=user_identifier&start=2026-01-01&end=2026-01-08")
	const want = "user_identifier,user_name,run_count\nada@x.example,,3\nbo@x.example,,3\n+15550100004,,2\n"
	line := d.text(`document.querySelectorAll(".copy pre")[0].textContent`)
	args := strings.Fields(strings.TrimPrefix(strings.ReplaceAll(line, "'", ""), "runlens "))
	if code, out, stderr := command(t, "", append(args, "--output", "csv")...); code != 0 || out != want {
		t.Errorf("%s\n%d %s%s", line, code, out, stderr)
	}
	for n, says := range []string{"--start=2026-01-01", `"model":"agent_runs"`, `dimensions=["user_identifier"],`,
		`Metrics:    []string{"run_count"},`, "runlens.pages(query)", "metrics:\n    - run_count"} {
		got := d.text(`document.querySelectorAll(".copy pre")[` + string(rune('0'+n)) + `].textContent`)
		if !strings.Contains(got, says) || strings.Contains(got, d.desk.key) {
			t.Errorf("%s\nlacks %s", got, says)
		}
	}
	if page := d.text("document.documentElement.outerHTML + document.cookie"); strings.Contains(page, d.desk.key) {
		t.Error("the page has the key")
	}
	fetched := func(format string) string {
		d.until(`(window.got ??= {}, window.got.` + format + ` === undefined && (window.got.` + format + ` = "", fetch(
			[...document.querySelectorAll("a[download]")].find((a) => a.href.includes("format=` + format + `")).href)
			.then((r) => r.text()).then((text) => window.got.` + format + ` = text)), window.got.` + format + ` !== "")`)
		return d.text("window.got." + format)
	}
	if got := fetched("csv"); got != want {
		t.Errorf("CSV:\n%s", got)
	}
	for format, magic := range map[string]string{"xlsx": "PK", "parquet": "PAR1"} {
		if got := fetched(format); !strings.HasPrefix(got, magic) {
			t.Errorf("%s begins with %.4q", format, got)
		}
	}
	// A picture is made in the browser.
	d.text(`HTMLAnchorElement.prototype.click = function () {
		window.saved = this.download + " " + this.href.slice(0, 5) }`)
	d.do(clickOn("button[data-png]"))
	d.until(`window.saved === "runs-for-each-person-from-1-jan-2026-to-8-jan-2026-in-utc.png blob:"`)
	d.choose("#over", "day")
	d.do(clickOn("button[data-png]"))
	d.until(`window.saved === "runs-per-day-for-each-person-from-1-jan-2026-to-8-jan-2026-in-utc.png blob:"`)
}

// A dashboard shows saved questions and its own, over one period; a file that asks for what is not there is refused.
func consoleDashboards(t *testing.T, o office) {
	file := filepath.Join(t.TempDir(), "health.yaml")
	write := func(content string) {
		must(t, os.WriteFile(file, []byte(content), 0o600))
	}
	write("title: Health\nlast: 11d\nrefresh: 1m\npanels:\n- saved: ./runs.yaml\n- title: People\n" +
		"  question: {metrics: [run_count], dimensions: [user_identifier]}\n" +
		"- title: Nobody\n  question: {metrics: [run_count], dimensions: [day], filter: [user_type=external]}\n" +
		"- title: Days\n  question: {metrics: [run_count], dimensions: [day], compare: previous}\n")
	saved := filepath.Join(filepath.Dir(file), "runs.yaml")
	content := "metrics: [run_count, unique_initiator_count]\ndimensions: [day]\nlast: 3d\noutput: table\n"
	must(t, os.WriteFile(saved, []byte(content), 0o600))
	d := o.console(t, "dashboards", console.Config{Dashboards: []string{file}})
	d.desk.use(t)
	d.shows("h1", "Health")
	d.until(`document.querySelectorAll(".panel .tile").length === 5`)
	d.shows("#panel-0 .tile", "Runs 9 not over yet | People 3")
	d.shows("#panel-1 svg g", "ada@x.example 4")
	d.shows("#panel-2 .empty", "Nothing was counted from 5 Jan 2026 to 15 Jan 2026 with these filters. Try Without")
	d.until(`document.querySelector("#panel-3 [data-chart] canvas") !== null`) // what has nothing stops nothing else
	d.shows("#panel-3 .about", "Compared until 14 Jan 2026: today is not over.")
	d.shows(".about", "All panels are about 5 Jan 2026 to 15 Jan 2026 in UTC")
	asked := d.asked.Load() // totals and rows of each panel; a page of the same dashboard shares the answers
	d.open(d.base + "/")
	d.until(`document.querySelectorAll(".panel .tile").length === 5`)
	if again := d.asked.Load(); again != asked {
		t.Errorf("%d requests for one page, %d for a second one", asked, again-asked)
	}
	d.choose("#period", "last=7d")
	d.until(`document.querySelectorAll(".panel .tile").length === 5`)
	d.shows("#panel-0 .tile", "Runs 1")
	d.shows("#panel-1 .tile", "Runs 1")

	out := filepath.Join(t.TempDir(), "out.html")
	if code, _, stderr := command(t, "", "console", "--dashboard", file, "--export", out); code != 0 {
		t.Fatal(stderr)
	}
	page, err := os.ReadFile(out)
	for _, never := range []string{"<script", "http://", "https://", "src=", d.desk.key} {
		if err != nil || strings.Contains(string(page), never) {
			t.Errorf("the exported page has %s (%v)", never, err)
		}
	}
	d.do(navigate("file://" + out))
	d.shows(".about", ": today is not over.")
	d.shows("h1", "Health")
	d.shows("h2", "Runs, people | People | Nobody | Days")

	for content, says := range map[string]string{
		"panels: []\n":                                  "1 to 24 panels",
		"panels: [{saved: nothing}]\n":                  "there is no saved question",
		"panels: [{title: x}]\n":                        "needs either saved",
		"panels: [{colour: x}]\n":                       "colour",
		"panels: [{question: {metrics: [run_cont]}}]\n": "agent_runs has no metric run_cont",
		"panels: [{question: {metrics: [run_count], dimensions: [agent]}}]\n":                "no dimension agent",
		"panels: [{question: {metrics: [run_count], filter: [source=x]}}]\n":                 "no dimension source",
		"panels: [{question: {metrics: [run_count], model: runs}}]\n":                        `no model "runs"`,
		"panels: [{question: {metrics: [run_count], grane: week}}]\n":                        "grane",
		"refresh: 1s\npanels: [{question: {metrics: [run_count], dimensions: [day]}}]\n":     "at least 4s",
		"panels: [{chart: pie, question: {metrics: [run_count]}}]\n":                         "neither line nor bar",
		"panels: [{question: {metrics: [run_count], start: 2026-02-01, end: 2026-01-01}}]\n": "after its end",
	} {
		write(content)
		code, _, stderr := command(t, "", "console", "--dashboard", file, "--export", out)
		if code == 0 || !strings.Contains(stderr, says) {
			t.Errorf("%s: %d %s", content, code, stderr)
		}
	}
}
