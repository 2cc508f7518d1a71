package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runlens/runlens/cmd/internal/console"
)

// A question of the page is saved and put on a dashboard in two clicks. The file keeps what its writer wrote. A name
// that is there asks.
func consoleSaving(t *testing.T, o office) {
	t.Parallel()
	d := o.console(t, "saving", console.Config{})
	folder := filepath.Join(string(d.config.Home), "dashboards")
	health := filepath.Join(folder, "health.yaml")
	const mine = "# Health of the desk\ntitle: Health\n\npanels:\n  # the people first\n" +
		"  - question: {metrics: [unique_initiator_count], start: 2026-01-01, end: 2026-01-08} # exact\n\n# to come: costs\n"
	const broken = "panels:\n- question: {metrics: [run_count]}\n- question:\n    metrics: [run_count]\n    grane: week\n"
	must(t, os.MkdirAll(folder, 0o700))
	for file, content := range map[string]string{health: mine, filepath.Join(folder, "broken.yaml"): broken} {
		must(t, os.WriteFile(file, []byte(content), 0o600))
		must(t, os.Chmod(file, 0o640)) // whatever the umask is
	}
	has := func(file, want string) {
		t.Helper()
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("%s: %v\n%s\nwant\n%s", file, err, got, want)
		}
	}
	const people = "/explore?metrics=run_count&dimensions=user_identifier&start=2026-01-01&end=2026-01-08"
	d.open(d.base + people)
	d.shows("header nav", "Explore Health broken ⚠ has a fault")
	d.do(clickOn("#save > summary"))
	d.click("#save button")
	d.shows("#save [role=status]", "Saved as @runs-for-each-person, and on Health.")
	added := strings.Replace(mine, "exact\n",
		"exact\n  - title: Runs for each person\n    saved: runs-for-each-person\n", 1)
	has(health, added)
	question := filepath.Join(string(d.config.Home), "queries", "runs-for-each-person.yaml")
	const asked = "model: agent_runs\nmetrics:\n  - run_count\ndimensions:\n  - user_identifier\nstart: \"2026-01-01\"\n" +
		"end: \"2026-01-08\"\n"
	has(question, asked)
	if info, err := os.Stat(health); err != nil || info.Mode() != 0o640 {
		t.Errorf("the dashboard's mode is %v, %v", info.Mode(), err)
	}
	d.click("#save [role=status] a")
	d.until(`document.querySelectorAll(".panel .asof").length === 2`)
	d.shows("#panel-1 svg g", "ada@x.example 3")
	d.shows("#panel-0 .tile", "People 3")

	// The same title asks before it replaces a question, and puts it on no dashboard twice.
	d.open(d.base + people + "&chart=bar")
	d.do(clickOn("#save > summary"))
	d.click("#save button")
	d.shows("#save [role=alert]", "There is a question @runs-for-each-person already.")
	has(question, asked)
	d.click("#save button")
	d.shows("#save [role=status]", "Saved as @runs-for-each-person, and on Health.")
	has(health, added)

	d.open(d.base + "/explore?metrics=run_count&dimensions=day&last=15d&timezone=Europe/Stockholm&chart=bar")
	d.do(clickOn("#save > summary"))
	d.choose("#save-board", "new")
	d.choose("#save-title", "Läufe: \"alle\"")
	d.choose("#board-title", "../Mine")
	d.click("#save button")
	d.shows("#save [role=status]", "Saved as @lufe-alle, and on ../Mine.")
	has(filepath.Join(folder, "mine.yaml"), "title: ../Mine\ntimezone: Europe/Stockholm\nlast: 15d\npanels:\n"+
		"    - title: 'Läufe: \"alle\"'\n      saved: lufe-alle\n      chart: bar\n")
	for _, wrong := range []struct{ field, value, says string }{
		{"#save-title", "…", "a title needs a letter"},
		{"#board-title", "mine", "there is a dashboard mine already"},
	} {
		d.open(d.base + "/explore?metrics=failed_run_count")
		d.do(clickOn("#save > summary"))
		d.choose("#save-board", "new")
		d.choose(wrong.field, wrong.value)
		d.click("#save button")
		d.shows("#save [role=alert]", wrong.says)
	}
	d.open(d.base + "/explore?metrics=run_cont")
	d.do(clickOn("#save > summary"))
	d.click("#save button")
	d.shows("#save [role=alert]", "agent_runs has no metric run_cont")
	if kept, err := d.config.Home.Questions(); err != nil || len(kept) != 2 {
		t.Errorf("saved are %q, %v", kept, err)
	}
	d.accessible("a form that says what is wrong")

	d.do(clickOn("header .faulty"))
	d.until(`document.querySelector("h1").innerText === "broken has a fault"`)
	d.shows(".banner", "broken.yaml, line 5: panel 2: a question has no field grane")
	d.shows("pre .worse", "5 grane: week")
	d.accessible("a dashboard with a fault")
}
