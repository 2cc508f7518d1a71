package main

import (
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/runlens/runlens/cmd/internal/console"
)

// What fails says why. The answer before stays, with its age.
func consoleFailures(t *testing.T, o office) {
	t.Parallel()
	var later time.Duration
	file := filepath.Join(t.TempDir(), "one.yaml")
	const panel = "last: 11d\npanels:\n- question: {metrics: [run_count], dimensions: [day]}\n"
	must(t, os.WriteFile(file, []byte(panel), 0o600))
	d := o.console(t, "failures", console.Config{Dashboards: []string{file},
		Now: func() time.Time { return consoleNow.Add(later) }})
	d.open(d.base + "/explore?model=agent_runs&metrics=run_cont&dimensions=day")
	d.shows(".refused", "unknown member run_cont; did you mean run_count?")
	d.open(d.base + "/explore?model=agent_runs&metrics=run_count&timezone=US/Eastern")
	d.shows(".refused", "America/New_York")
	d.open(d.base + "/explore?model=agent_runs&metrics=run_count&last=400d")
	d.shows(".refused", "at most 366")
	d.offersNoTry()
	d.open(d.base + "/explore?limit=many")
	d.shows(".refused", `limit "many" is no number`)

	held := make(chan struct{})
	d.hold.Store(&held)
	d.do(navigate(d.base + "/explore?model=agent_runs&metrics=failed_run_count&dimensions=day"))
	d.until(`/^Asking … [1-9]/.test(document.querySelector("#waiting")?.innerText ?? "")`)
	if d.text(`document.querySelector("#metrics, input[name=metrics]").disabled`) != "false" {
		t.Error("the form cannot be used while the server is slow")
	}
	d.hold.Store(nil)
	close(held)
	d.rest()
	d.shows(".tile", "Failures 2")
	if d.text(`document.querySelector("#waiting").hidden`) != "true" {
		t.Error("it still says that it asks")
	}

	answered := d.text("location.href")
	d.broken.Store(true)
	later = 3 * time.Minute
	d.open(answered)
	d.shows(".banner", "This answer is 3 min old. A newer one failed: internal_error")
	d.shows(".tile", "Failures 2")
	d.triesAgain(answered, "A newer one failed: internal_error", "Failures 2")
	d.triesAgain(d.base+"/explore?model=agent_runs&metrics=run_count&last=3d", "no answer. internal_error", "Runs 1")
	d.triesAgain(d.base+"/dashboard?file="+url.QueryEscape(file), "A newer one failed: internal_error", "Runs 9")
	d.open(answered)

	d.stop()
	d.do(clickOn("#metric-run_count"))
	d.until(`document.querySelector("#lost").innerText.startsWith("The console does not answer")`)
	d.shows(".tile", "Failures 2")
}

// triesAgain fails unless a page whose answer fails shows a banner with a button, which asks again.
func (d *deskConsole) triesAgain(address, failed, answered string) {
	d.Helper()
	d.broken.Store(true)
	d.open(address)
	d.shows(".banner", failed)
	asked := d.asked.Load()
	d.click("[data-again]")
	if d.shows(".banner", failed); d.asked.Load() == asked {
		d.Error("nothing was asked again")
	}
	d.broken.Store(false)
	d.click("[data-again]")
	d.shows(".tile", answered)
	d.offersNoTry()
}

func (d *deskConsole) offersNoTry() {
	d.Helper()
	if n := d.text(`document.querySelectorAll("[data-again]").length`); n != "0" {
		d.Errorf("%s questions can be tried again that were answered or are wrong", n)
	}
}

// A key that is refused shows nothing of what it was answered before, whatever fails then.
func consoleForgets(t *testing.T, o office) {
	t.Parallel()
	var later time.Duration
	d := o.console(t, "forgets", console.Config{Now: func() time.Time { return consoleNow.Add(later) }})
	answered := d.base + "/explore?model=agent_runs&metrics=failed_run_count&dimensions=day"
	d.open(answered)
	d.shows(".tile", "Failures 2")
	d.unknown.Store(true)
	later = time.Minute
	d.open(d.base + "/explore?model=agent_runs&metrics=cancelled_run_count&last=7d")
	d.shows(".refused", "the key is unknown or revoked")
	d.unknown.Store(false)
	d.broken.Store(true)
	d.open(answered)
	d.shows(".refused", "internal_error")
	if shown := d.text(`document.querySelectorAll(".tile").length`); shown != "0" {
		t.Errorf("%s tiles of an earlier answer are shown", shown)
	}
}
