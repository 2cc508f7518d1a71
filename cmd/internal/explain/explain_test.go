package explain

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/http/client"
	"github.com/runlens/runlens/olap/daterange"
)

// An alias is no zone that the server takes, and stands for one.
func TestZonesAreTheServers(t *testing.T) {
	canonical := daterange.Zones()
	for alias, target := range aliases() {
		if slices.Contains(canonical, alias) || !slices.Contains(canonical, target) {
			t.Errorf("%s for %s", target, alias)
		}
	}
	if len(aliases()) < 100 {
		t.Errorf("%d aliases", len(aliases()))
	}
	for name, want := range map[string]string{"Asia/Calcutta": "Asia/Kolkata", "Europe/Stockholm": "Europe/Stockholm",
		"": "UTC", "Mars/Base": "UTC"} {
		if got := Canonical(name); got != want {
			t.Errorf("%q is %s", name, got)
		}
	}
	for name, want := range map[string]string{
		"Asia/Calcutta": "use Asia/Kolkata", "us/pacific": "use America/Los_Angeles", "GMT": "use UTC",
		"Etc/UTC": "use UTC", "Iceland": "use Atlantic/Reykjavik", "utc": "written UTC",
		"America/new_york": "written America/New_York", "Amercia/Bogota": "did you mean America/Bogota?",
		"": "there is no timezone \"\"; a timezone", "+02:00": "there is no timezone \"+02:00\"; a",
		"EST": "there is no timezone \"EST\"; a",
	} {
		if got := zone(name); !strings.Contains(got, want) {
			t.Errorf("%q: %s", name, got)
		}
	}
}

// A name that was begun is completed, if nothing is closer.
func TestBeginningsAreCompleted(t *testing.T) {
	members := []string{"user_identifier", "user_type", "agent_id"}
	for name, want := range map[string]string{"agent": "agent_id", "user": "user_identifier", "user_typ": "user_type",
		"us": "", "status": ""} {
		if got := nearest(name, members); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// A name may be empty, and is then no guess.
func TestAnEmptyNameIsNoGuess(t *testing.T) {
	page := &client.Response{Columns: []client.Column{{Name: "agent_id"}, {Name: "agent_name"}, {Name: "run_count"}},
		Rows: [][]client.Value{{client.StringValue("b1"), client.StringValue(""), client.Int64Value(1)}}}
	for value, want := range map[string]string{"zzzz": "no agent_id is zzzz in these days; there are b1",
		"b2": "no agent_id is b2 in these days; did you mean b1?"} {
		if got := missing(page, "agent_id", value); got != want {
			t.Errorf("%s: %q, want %q", value, got, want)
		}
	}
}

// A hint with a flag is pasted, so an identifier in it is one word of a shell, and one value of a filter.
func TestHintsAreWordsOfAShell(t *testing.T) {
	for id, want := range map[string]string{
		"b1":                 "user_identifier=b1",
		"$(touch pasted)":    "'user_identifier=$(touch pasted)'",
		"nightly, weekly":    `'user_identifier="nightly, weekly"'`,
		"it's":               `'user_identifier=it'\''s'`,
		"\x1b[201~\rtouch x": `$'user_identifier="\x1b[201~\x0dtouch x"'`,
	} {
		page := &client.Response{Columns: make([]client.Column, 3), Rows: [][]client.Value{
			{client.StringValue(id), client.StringValue("Name0"), client.Int64Value(1)}}}
		for value, says := range map[string]string{
			"name0": "name0 is a name; filter by its user_identifier: --filter " + want,
			"Nam0":  "no user_identifier is Nam0 in these days; did you mean Name0, --filter " + want + "?",
		} {
			if got := missing(page, "user_identifier", value); got != says {
				t.Errorf("%s\nwant %s", got, says)
			}
		}
	}
}

// Who is told to wait is told how long, in whole seconds that are enough; not where nobody knows.
func TestWhenToTryAgain(t *testing.T) {
	for wait, want := range map[time.Duration]string{
		0:                      "the server answered 429 Too Many Requests; try again later",
		200 * time.Millisecond: "the server answered 429 Too Many Requests; try again in 1 s",
		59 * time.Second:       "the server answered 429 Too Many Requests; try again in 59 s",
	} {
		line, usage := Refusal(t.Context(), &client.Error{Status: 429, RetryAfter: wait}, client.Query{}, nil)
		if line != want || usage {
			t.Errorf("%v: %q, %v, want %q", wait, line, usage, want)
		}
	}
}
