package main

import (
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/cmd/internal/console"
	"github.com/runlens/runlens/http/client"
)

// A key that sees less than its organization opens the first page too: without people and a comparison where it
// shows no person, and about as many days as it sees.
func consoleNarrowed(t *testing.T, o office) {
	t.Parallel()
	d := o.console(t, "narrowed", console.Config{})
	serve := func(now time.Time, restriction ...string) {
		t.Helper()
		_, key := createKey(t, o.flags, append([]string{"--org", "narrowed"}, restriction...)...)
		config := d.config
		var err error
		if config.Client, err = client.New(client.Config{URL: o.base, Key: key, MaxWait: -1}); err != nil {
			t.Fatal(err)
		}
		config.Now = func() time.Time { return now }
		d.serve(t, config)
	}
	serve(consoleNow, "--min-people", "2")
	// Nothing is compared: a group that is left out of one period would be 0 there. So today counts.
	d.shows("[aria-labelledby=by-agent_id] tbody", "Billing desk 10")
	if got := d.text(`document.getElementById("answer").innerText`); strings.Contains(got, "▲") {
		t.Errorf("a key that leaves out groups of few people is shown\n%s", got)
	}
	d.shows(".tile", "Runs 10 not over yet | Completed runs 6")
	d.until(`document.querySelector("[aria-labelledby=by-user_identifier]") === null`)
	d.shows(".notes", "The key of this console shows no person.")
	d.until(`document.getElementById("compare").value === ""`)
	d.open(d.base + "/explore?metrics=run_count&dimensions=day&start=2026-01-06&end=2026-01-07")
	d.shows(".empty", "There were too few people for the key of this console, or nobody, from 6 Jan 2026 to 7 Jan 2026.")
	// On 6 January the desk had one run, of one person, and on the two days before three of two people.
	for _, asked := range []string{
		"metrics=run_count&dimensions=agent_id&start=2026-01-06&end=2026-01-07&compare=previous",
		"metrics=run_count&dimensions=day&start=2026-01-05&end=2026-01-07&fill=true",
	} {
		d.open(d.base + "/explore?" + asked)
		d.shows(".notes", "It leaves out groups of too few people: what is compared or filled counts them as 0.")
	}

	now := time.Now().UTC()
	for days, want := range map[string]string{"45": "last=30d ", "20": "last=7d ", "1": "today=true "} {
		serve(now, "--days", days)
		d.until(`document.querySelector("#answer .empty") !== null`)
		if got := d.text(`document.getElementById("period").value + " " + document.getElementById("compare").value`); got !=
			want {
			t.Errorf("a key that sees %s days begins with %q, want %q", days, got, want)
		}
	}
}
