package main

import (
	"testing"
	"time"

	"github.com/runlens/runlens/cmd/internal/console"
	"github.com/runlens/runlens/http/client"
)

// A key that sees less than its organization opens the first page too: without people where it shows no person, and
// about as many days as it sees.
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
	d.shows(".tile", "Runs 9 | Completed runs 6") // before, there were too few people
	d.shows("[aria-labelledby=by-agent_id] tbody", "Billing desk 9")
	d.until(`document.querySelector("[aria-labelledby=by-user_identifier]") === null`)
	d.shows(".notes", "The key of this console shows no person.")

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
