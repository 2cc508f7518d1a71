package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// With --on-change what is crossed is told once, and then that it no longer is. With --min-count a row that counts
// little crosses nothing.
func queryChanges(t *testing.T, o office) {
	d := o.desk(t, "changes", "2026-01-01 a@x.example FAILED", "2026-01-02 a@x.example FAILED",
		"2026-01-02 b@x.example COMPLETED", "2026-01-03 b@x.example FAILED",
		`{"record":"agent","organization_id":"changes","agent_id":"`+agentOfDesk+
			`","name":"Billing desk","slug":"billing","updated_at":"2026-01-01T00:00:00Z"}`)
	state := filepath.Join(t.TempDir(), "state.json")
	days := "--metrics run_success_rate,run_count --output csv -q --on-change " + state + " --start 2026-01-01 --end "
	people := days + "2026-01-02 --dimensions user_identifier"
	for n, step := range []struct{ flags, condition, want string }{
		{people, "run_success_rate < 0.9",
			"4 threshold: run_success_rate < 0.9: the value of user_identifier a@x.example is 0 (0%)\n"},
		{people, "run_success_rate < 0.9", "0 "},
		{people + " --filter user_identifier=b@x.example", "run_success_rate < 0.9",
			"0 resolved: run_success_rate < 0.9: the value of user_identifier a@x.example\n"},
		{people + " --min-count 2", "run_success_rate < 0.9",
			"4 threshold: run_success_rate < 0.9: the value of user_identifier a@x.example is 0 (0%)\n"},
		{people + " --min-count 3", "run_success_rate < 0.9",
			"0 resolved: run_success_rate < 0.9: the value of user_identifier a@x.example\n"},
		// A row that a limit leaves out may cross still.
		{people, "run_success_rate < 0.9",
			"4 threshold: run_success_rate < 0.9: the value of user_identifier a@x.example is 0 (0%)\n"},
		{people + " --order user_identifier:desc --limit 1", "run_success_rate < 0.9", "0 "},
		{people + " --order run_success_rate:desc --limit 1", "run_success_rate < 0.9", "0 "},
		{people, "run_success_rate < 0.9", "0 "},
		{people + " --order user_identifier --limit 1 --min-count 3", "run_success_rate < 0.9",
			"0 resolved: run_success_rate < 0.9: the value of user_identifier a@x.example\n"},
		{days + "2026-01-03 --dimensions agent_id", "run_success_rate < 0.9",
			"4 threshold: run_success_rate < 0.9: the value of agent_id " + agentOfDesk + " (Billing desk) is 0.25 (25%)\n"},
		{days + "2026-01-03 --dimensions agent_id", "run_success_rate < 0.1",
			"0 resolved: run_success_rate < 0.9: the value of agent_id " + agentOfDesk + " (Billing desk)\n"},
	} {
		code, _, stderr := d.query(step.flags, "--fail-if", step.condition)
		if got := fmt.Sprint(code, " ", stderr); got != step.want {
			t.Errorf("%d: %q, want %q", n, got, step.want)
		}
	}
	// What fails changes nothing of the state.
	before, _ := os.ReadFile(state)
	if code, _, _ := d.query(people+" --url http://127.0.0.1:1", "--fail-if", "run_count > 0"); code != exitFailed {
		t.Errorf("no server: %d", code)
	}
	if after, err := os.ReadFile(state); err != nil || string(after) != string(before) || string(after) != "{}\n" {
		t.Errorf("the state is %q, %v", after, err)
	}
	must(t, os.WriteFile(state, []byte("a,b"), 0o600))
	for says, args := range map[string][]string{
		"was not written by": {"--metrics", "run_count", "--on-change", state, "--fail-if", "run_count > 0"},
		"are for --fail-if":  {"--metrics", "run_count", "--min-count", "3"},
		"needs a metric":     {"--metrics", "run_success_rate", "--min-count", "3", "--fail-if", "run_success_rate > 0"},
		"at least 0":         {"--metrics", "run_count", "--min-count=-3", "--fail-if", "run_count > 0"},
	} {
		if code, _, stderr := d.query("", args...); code != exitUsage || !strings.Contains(stderr, says) {
			t.Errorf("%s: %d %s", says, code, stderr)
		}
	}
}

// A filter on a value that there is none of says so, and what may have been meant.
func queryMissing(t *testing.T, o office) {
	d := o.desk(t, "missing", "2026-01-01 ada@x.example COMPLETED", "2026-01-02 bo@x.example COMPLETED",
		`{"record":"agent","organization_id":"missing","agent_id":"`+agentOfDesk+
			`","name":"Billing desk","slug":"billing","updated_at":"2026-01-01T00:00:00Z"}`)
	for filter, want := range map[string]string{
		"user_identifier=adda@x.example": "no user_identifier is adda@x.example in these days; did you mean ada@x.example?",
		"user_identifier=bo@":            "did you mean bo@x.example?",
		"user_identifier=zzz":            "no user_identifier is zzz in these days; there are ada@x.example, bo@x.example",
		"agent_id=billing desk":          "billing desk is a name; filter by its agent_id: --filter agent_id=" + agentOfDesk,
		"agent_id=Bil":                   "did you mean Billing desk, --filter agent_id=" + agentOfDesk + "?",
		"user_identifier=ada@x.example":  "",
	} {
		code, _, stderr := d.query(january, "--filter", filter)
		if has := strings.Contains(stderr, "note: "); code != 0 || has != (want != "") || !strings.Contains(stderr, want) {
			t.Errorf("%s: %d %s", filter, code, stderr)
		}
	}
	// What each filter finds by itself is there, also where it is not named as answers name it.
	for _, filter := range []string{"agent_id=billing", "agent_id=" + strings.ToUpper(agentOfDesk),
		"user_identifier=ADA@x.example"} {
		code, _, stderr := d.query(january, "--filter", filter, "--filter", "user_type=external")
		if code != 0 || strings.Count(stderr, "note: ") != 1 ||
			!strings.Contains(stderr, "no user_type is external in these days; did you mean internal?") {
			t.Errorf("%s: %d %s", filter, code, stderr)
		}
	}
	if _, _, stderr := d.query(january+"-q", "--filter", "user_identifier=zzz"); stderr != "" {
		t.Errorf("-q says %s", stderr)
	}
	_, _, stderr := d.query("--metrics run_count --start 2019-01-01 --end 2019-01-02", "--filter", "user_identifier=zzz")
	if !strings.Contains(stderr, "nothing was counted in these days, whatever the filters") {
		t.Error(stderr)
	}
	// There was one person each day, and there were two in all.
	_, key := createKey(t, o.flags, "--org", "missing", "--min-people", "2")
	t.Setenv("RUNLENS_API_KEY", key)
	for days, filter := range map[string]string{"--start 2026-01-01 --end 2026-01-01": "agent_id=zzz",
		"--start 2026-01-01 --end 2026-01-02": "day=2026-01-01"} {
		_, _, stderr := d.query("--metrics run_count --dimensions user_type "+days, "--filter", filter)
		if strings.Count(stderr, "note: ") != 1 ||
			!strings.Contains(stderr, "the key leaves out groups of too few people, so there may be some") {
			t.Errorf("%s: %s", filter, stderr)
		}
	}
}

// The organizations of the store are listed; a key for one that has nothing says so.
func orgsList(t *testing.T, o office) {
	o.stored(t, "listed", "2026-01-01 a@x.example FAILED", "2026-01-02 a@x.example FAILED")
	code, out, stderr := command(t, "", append([]string{"orgs", "list"}, o.flags...)...)
	if code != 0 || !strings.HasPrefix(out, "ORGANIZATION ") || !strings.Contains(strings.Join(strings.Fields(out), " "),
		"listed 0 2 2026-01-02T09:30:00.000Z 1") {
		t.Errorf("%d %s%s", code, out, stderr)
	}
	create := append([]string{"keys", "create", "--output", "json"}, o.flags...)
	code, out, stderr = command(t, "", append(create, "--org", "lissted")...)
	if code != 0 || !strings.HasPrefix(out, "{") || !strings.Contains(stderr, "the store has no runs of lissted yet") {
		t.Errorf("%d %s%s", code, out, stderr)
	}
	if _, _, stderr = command(t, "", append(create, "--org", "listed")...); strings.Contains(stderr, "note") {
		t.Error(stderr)
	}
	code, out, _ = command(t, "", append([]string{"orgs", "list", "--output", "json"}, o.flags...)...)
	if want := `{"organization_id":"lissted","agents":0,"runs":0,"last_run_at":null,"keys":1}` + "\n"; code != 0 ||
		!strings.Contains(out, want) {
		t.Errorf("%d %s", code, out)
	}
	readme := fileOf(t, "README.md", []byte("# A page\n"))
	code, _, stderr = command(t, "", append([]string{"ingest", readme}, o.flags...)...)
	if code != exitFailed || !strings.Contains(stderr, "README.md: it does not begin as NDJSON does") {
		t.Errorf("%d %s", code, stderr)
	}
}
