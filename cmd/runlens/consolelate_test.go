package main

import (
	"testing"

	"github.com/runlens/runlens/cmd/internal/console"
)

// What was asked last is shown, under its own address, in whatever order the answers come.
func consoleLate(t *testing.T, o office) {
	t.Parallel()
	d := o.console(t, "late", console.Config{})
	const (
		person = `document.querySelector("[aria-labelledby=by-user_identifier] tbody a").click()`
		week   = `(() => { const e = document.querySelector("#period"); e.value = "last=7d";
			e.dispatchEvent(new Event("change", {bubbles: true})) })()`
		activity = `(() => { const e = document.querySelector("#model"); e.value = "agent_user_activity";
			e.dispatchEvent(new Event("change", {bubbles: true})) })()`
		failures = `document.querySelector("#metric-failed_run_count").click()` // of which the answers are there
		byPerson = `document.querySelector("#draw-user_identifier").click()`    // are not

		failed = "&metrics=failed_run_count&model=agent_runs"
	)
	for name, c := range map[string]struct{ period, first, second, address, sentence string }{
		"a person, then another metric": {"&last=11d", person, failures,
			"?dimensions=day&last=11d" + failed, "Failures per day"},
		"a period, then another metric": {"&last=12d", week, failures,
			"?dimensions=day&last=12d" + failed, "Failures per day"},
		"the model, then another metric": {"&last=13d", activity, failures,
			"?dimensions=day&last=13d" + failed, "Failures per day"},
		"a person, then all": {"&last=14d", person, byPerson,
			"?dimensions=user_identifier&dimensions=day&last=14d&metrics=run_count&model=agent_runs",
			"Runs per day for each person"},
	} {
		d.open(d.base + "/explore?metrics=run_count&dimensions=day" + c.period)
		d.text(`window.sent = 0; const send = XMLHttpRequest.prototype.send; XMLHttpRequest.prototype.send = function (body) {
			sent++; this.addEventListener("loadend", () => { sent-- }); send.call(this, body) }; 0`)
		held, asked := make(chan struct{}), d.asked.Load()
		d.hold.Store(&held)
		d.text(c.first + "; 0")
		comesTrue(t, func() bool { return d.asked.Load() > asked })
		d.text(c.second + "; 0")
		if c.second == failures {
			d.until(`document.querySelector("figcaption").textContent.startsWith("Failures")`)
		}
		d.hold.Store(nil)
		close(held)
		d.until(`sent === 0`)
		d.rest()
		if got := d.text("location.search"); got != c.address {
			t.Errorf("%s: the address is %s, want %s", name, got, c.address)
		}
		d.shows("figcaption", c.sentence)
	}
}
