package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// One line says what is wrong and what to do; what the question is to blame for ends with 2.
func queryRefusals(t *testing.T, o office) {
	d := o.desk(t, "refusals", "2026-01-01 a@x.example COMPLETED")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	nobody := listener.Addr().String()
	listener.Close()
	many := strings.Repeat("x,", 50) + "x"
	for _, c := range []struct{ flags, want string }{
		{"--metrics run_cout", "2 unknown member run_cout; did you mean run_count? agent_runs has the metrics run_count, " +
			"completed_run_count,"},
		{"--metrics run_count --dimensions dya", "2 unknown member dya; did you mean day? agent_runs has the dimensions " +
			"agent_id, user_identifier, user_type, day"},
		{"--metrics run_count --filter agnt_id=x", "2 unknown member agnt_id; did you mean agent_id?"},
		{"--metrics zebra", "2 unknown member zebra; agent_runs has the metrics"},
		{"--metrics interaction_count", "2 agent_runs has no interaction_count; it is a member of the other model: --model " +
			"agent_user_activity"},
		{"--metrics run_count --dimensions agent_name", "2 agent_name is no member; it comes along with the dimension " +
			"agent_id"},
		{"--metrics day", "2 day is a dimension, not a metric"},
		{"--metrics run_count --dimensions run_count", "2 run_count is a metric, not a dimension"},
		{"--metrics run_count,run_count", "2 run_count is named twice"},
		{"--metrics run_count --dimensions day,day", "2 day is named twice"},
		{"--metrics run_count --filter run_count=1", "2 run_count is a metric, and filters are on dimensions only"},
		{"--metrics run_count --filter day=x", `2 day cannot filter by "x": a day is written 2026-01-31`},
		{"--metrics run_count --filter user_type=", "2 a value of the filter on user_type has 0 characters, and must have " +
			"1 to 200"},
		{"--metrics run_count --filter user_type=" + many, "2 the filter on user_type has 51 values, at most 50"},
		{"--metrics run_count --order run_count", "2 a query without dimensions has one row, so it takes no order"},
		{"--metrics run_count --dimensions day --order user_type",
			"2 cannot order by user_type, which is not selected: day, run_count"},
		{"--metrics run_count --dimensions day --order day,day:desc", "2 day is named twice"},
		{"--metrics run_count --model agent_rnus",
			`2 there is no model "agent_rnus"; there are agent_runs and agent_user_activity`},
		{"--metrics run_count --timezone US/Eastern", "2 the timezone US/Eastern is an alias: use America/New_York"},
		{"--metrics run_count --timezone europe/stockholm", "2 the timezone europe/stockholm is written Europe/Stockholm"},
		{"--metrics run_count --timezone Europe/Stokholm",
			`2 there is no timezone "Europe/Stokholm"; did you mean Europe/Stockholm?`},
		{"--metrics run_count --start 2025-01-01 --end 2026-01-15", "2 the range covers 380 days, at most 366"},
		{"--metrics run_count --start 9999-12-31 --end 9999-12-31", "2 the range ends on 9999-12-31, and must end before " +
			"the year 10000 begins in UTC (invalid_query at range.end"},
		{"--metrics run_count --start 2026-02-01 --end 2026-01-31", "2 the range starts on 2026-02-01, after its end"},
		{"--metrics run_count --limit 0", "2 --limit must be at least 1"},
		{"--metrics run_count --watch 10ms", "2 --watch must be at least 1s"},
		{"--metrics run_count --fail-if x", "2 --fail-if x must be METRIC"},
		{"--metrics run_count --fail-if run_rate<1", "2 --fail-if run_rate<1: the answer has no run_rate; it has run_count"},
		{"", "2 --metrics is needed"},
		{"--metrix run_count", "2 unknown flag --metrix"},
		{"--metrics run_count --output excel", "2 --output"},
		{"weekly --metrics run_count", "2 unexpected argument weekly; a saved question is named @weekly"},
		{"@weekly", "2 there is no saved question"},
		{"@we$kly", "2 is no name"},
		{"--metrics run_count --profile work", "2 there is no profile work; 'runlens login --profile work' makes it"},
		{"--metrics run_count --url ftp://x", "2 is no address"},
		{"--metrics run_count --url " + nobody, "1 no server answers at http://" + nobody +
			": start it with 'runlens serve', or name another with --url"},
		{"--body /dev/null", "2 --body:"},
		{"--body /dev/null --metrics run_count", "2 --body is a whole request; leave out --metrics"},
		{"--body /dev/null --limit 5", "2 --body is a whole request; leave out --limit"},
		{"--body /dev/null @weekly", "2 --body is a whole request; leave out the saved question"},
		{"--body /no/file", "2 --body:"},
	} {
		code, out, stderr := d.query(c.flags)
		want, says, _ := strings.Cut(c.want, " ")
		if fmt.Sprint(code) != want || out != "" || !strings.Contains(stderr, says) || strings.Count(stderr, "\n") != 1 ||
			code == exitUsage && !strings.HasPrefix(stderr, "runlens query: ") {
			t.Errorf("%s: exit code %d, want %s %s\n%s%s", c.flags, code, want, says, stderr, out)
		}
		if strings.Contains(stderr, d.key) {
			t.Errorf("%s shows a secret: %s", c.flags, stderr)
		}
	}
	for body, says := range map[string]string{
		`{`: "--body:", `{"modell":"x"}`: "modell", `{"model":"a","model":"a"}`: "duplicate", totals + "x": "--body:",
		`{"limit":0}`: "limit is 0", `{"cursor":""}`: "cursor is empty",
		strings.Replace(totals, "run_count", "run_cout", 1): "did you mean run_count?",
	} {
		if code, _, stderr := command(t, body, "query", "--body", "-"); code != exitUsage || !strings.Contains(stderr, says) {
			t.Errorf("%s: %d %s", body, code, stderr)
		}
	}
	_, few := createKey(t, d.flags, "--min-people", "5", "--days", "30")
	t.Setenv("RUNLENS_API_KEY", few)
	for flags, says := range map[string]string{
		"--metrics run_count --start 2020-01-01 --end 2020-01-31":    "the key sees only the last days",
		"--metrics run_count --last 7d --dimensions user_identifier": "ask without user_identifier",
	} {
		if code, _, stderr := d.query(flags); code != exitUsage || !strings.Contains(stderr, says) {
			t.Errorf("%s: %d %s", flags, code, stderr)
		}
	}
	// A total over too few people is no number.
	d.answers("too few", "--metrics run_count,run_success_rate --last 7d --output csv",
		"run_count,run_success_rate\n,\n")
	d.answers("too few, compared", "--metrics run_count --last 7d --compare previous --output csv",
		"run_count,run_count_previous,run_count_difference,run_count_percent\n,,,\n")
	_, bare := createKey(t, d.flags, "--scopes", "")
	for key, says := range map[string]string{"rl_nobody": "unknown or revoked, has expired, or",
		bare: "--scopes analytics:read", "a b": "no key has"} {
		t.Setenv("RUNLENS_API_KEY", key)
		if code, _, stderr := d.query("--metrics run_count"); code == exitDone || !strings.Contains(stderr, says) ||
			strings.Contains(stderr, key) {
			t.Errorf("%d %s", code, stderr)
		}
	}
}

// Conditions for cron: 4 says that one holds, with the row.
func queryThresholds(t *testing.T, o office) {
	d := o.desk(t, "thresholds", "2026-01-01 a@x.example COMPLETED", "2026-01-02 a@x.example FAILED",
		"2026-01-02 b@x.example COMPLETED", "2026-01-03 b@x.example RUNNING")
	days := january + "--dimensions day --output csv -q "
	for condition, want := range map[string]string{
		"run_success_rate < 0.9":  "4 threshold: run_success_rate < 0.9: the value of day 2026-01-02 is 0.5 (50%)\n",
		"run_success_rate < 0.5":  "0 ",
		"run_success_rate <= 0.5": "4 threshold: run_success_rate <= 0.5: the value of day 2026-01-02 is 0.5 (50%)\n",
		"run_count>=2":            "4 threshold: run_count>=2: the value of day 2026-01-02 is 2\n",
		"run_count > 2":           "0 ",
	} {
		code, out, stderr := d.query(days, "--fail-if", condition)
		if got := fmt.Sprint(code, " ", stderr); got != want || strings.Count(out, "\n") != 4 {
			t.Errorf("%s: %s%s", condition, got, out)
		}
	}
	code, _, stderr := d.query(days, "--fail-if", "run_count > 5", "--fail-if", "run_count < 5")
	if code != exitThreshold || strings.Count(stderr, "threshold: ") != 3 {
		t.Errorf("either of two: %d %s", code, stderr)
	}
	code, _, stderr = d.query(days+"--start 2026-01-01 --end 2026-01-20 --fill", "--fail-if", "run_count == 0")
	if code != exitThreshold || strings.Count(stderr, "\n") != 11 || !strings.Contains(stderr, "threshold: and 7 more") {
		t.Errorf("many rows: %d %s", code, stderr)
	}
	file := filepath.Join(t.TempDir(), "x.csv")
	if code, _, _ := d.query(days+"-o "+file, "--fail-if", "run_count > 0"); code != exitThreshold {
		t.Errorf("with a file: %d", code)
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}

// Saved questions keep what was asked, periods relative; flags beside them win.
func querySaved(t *testing.T, o office) {
	d := o.desk(t, "saved", "2026-01-01 a@x.example COMPLETED", "2026-01-02 b@x.example FAILED")
	code, out, stderr := d.query("--metrics run_count --dimensions user_identifier --start 2026-01-01 --end 2026-01-02 " +
		"--filter user_type=internal --output csv --save users")
	if code != 0 || !strings.Contains(stderr, "'runlens query @users' asks it again") {
		t.Fatal(code, stderr)
	}
	path := filepath.Join(os.Getenv("XDG_CONFIG_HOME"), "runlens/queries/users.yaml")
	content, err := os.ReadFile(path)
	if want := "model: agent_runs\nmetrics:\n  - run_count\ndimensions:\n  - user_identifier\nfilter:\n" +
		"  - user_type=internal\nstart: \"2026-01-01\"\nend: \"2026-01-02\"\ntimezone: UTC\nlimit: 100\n" +
		"week-start: monday\noutput: csv\n"; err != nil || string(content) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, content, want)
	}
	d.answers("again", "@users", out)
	d.answers("a flag beside it", "@users --output ndjson --limit 1",
		`{"user_identifier":"a@x.example","user_name":null,"run_count":1}`+"\n")
	d.answers("another period", "@users --last 1d --end 2026-01-02",
		"user_identifier,user_name,run_count\nb@x.example,,1\n")
	d.answers("from a file", "@"+path, out)
	if code, _, _ := d.query("@users --metrics run_success_rate --save users"); code != 0 {
		t.Error(code)
	}
	d.answers("saved on", "@users", "user_identifier,user_name,run_success_rate\na@x.example,,1\nb@x.example,,0\n")
	if code, _, _ := d.query("@users --metrics nothing --save users"); code != exitUsage {
		t.Error(code)
	}
	d.answers("a refused question is not saved", "@users", "user_identifier,user_name,run_success_rate\na@x.example,,1\n"+
		"b@x.example,,0\n")
	if code, _, stderr := d.query("@other"); code != exitUsage || !strings.Contains(stderr, "saved are @users") {
		t.Errorf("%d %s", code, stderr)
	}
	for text, says := range map[string]string{"metricks: [a]\n": "metricks", "metrics: [": "yaml",
		"grain: day\nmetrics: [run_count]\n": "--grain", "output: pdf\nmetrics: [run_count]\n": "--output pdf"} {
		must(t, os.WriteFile(path, []byte(text), 0o600))
		if code, _, stderr := d.query("@users"); code != exitUsage || !strings.Contains(stderr, says) {
			t.Errorf("%q: %d %s", text, code, stderr)
		}
	}
}

// A profile keeps a key for its own server, in a file that nobody else can read.
func queryProfiles(t *testing.T, o office) {
	d := o.desk(t, "profiles", "2026-01-01 a@x.example COMPLETED")
	t.Setenv("RUNLENS_API_KEY", "")
	t.Setenv("RUNLENS_URL", "")
	config := os.Getenv("XDG_CONFIG_HOME")
	login := func(stdin string, args ...string) (int, string, string) {
		return command(t, stdin, append([]string{"login"}, args...)...)
	}
	asked := january + "--output csv"
	if code, out, stderr := login(d.key+"\n", "--url", d.base); code != 0 || strings.Contains(out+stderr, d.key) {
		t.Fatal(code, out, stderr)
	}
	d.answers("the default profile", asked, "run_count,run_success_rate\n1,1\n")
	if code, _, stderr := login("rl_nobody\n", "--url", d.base, "--profile", "bad"); code != exitFailed ||
		!strings.Contains(stderr, "nothing was kept") {
		t.Errorf("a wrong key: %d %s", code, stderr)
	}
	if code, _, stderr := login("", "--url", d.base); code != exitUsage ||
		!strings.Contains(stderr, "an API key is needed") {
		t.Errorf("no key: %d %s", code, stderr)
	}
	file := fileOf(t, "key", []byte(d.key))
	t.Setenv("RUNLENS_PROFILE", "work")
	if code, out, _ := login("", "--url", d.base, "--key-file", file); code != 0 || !strings.HasSuffix(out, " as work\n") {
		t.Errorf("a key from a file: %d", code)
	}
	t.Setenv("RUNLENS_PROFILE", "")
	d.answers("a named profile", asked+" --profile work", "run_count,run_success_rate\n1,1\n")
	// Address and key come each from a flag, else a variable, else the profile, else the default. The key of a profile
	// goes to no other server.
	d.answers("the address of the profile", asked+" --url "+d.base+"/", "run_count,run_success_rate\n1,1\n")
	if code, _, stderr := d.query(asked + " --url http://127.0.0.1:1"); code != exitUsage ||
		!strings.Contains(stderr, "that of the profile default is for "+d.base+" alone") {
		t.Errorf("another server: %d %s", code, stderr)
	}
	if code, _, stderr := d.query(asked + " --profile work --url " + d.base); code != exitUsage ||
		!strings.Contains(stderr, "leave out --url") {
		t.Errorf("both: %d %s", code, stderr)
	}
	t.Setenv("RUNLENS_API_KEY", "rl_nobody")
	if code, _, stderr := d.query(asked); code != exitFailed || !strings.Contains(stderr, "the key is unknown") {
		t.Errorf("a key of the environment before that of the profile: %d %s", code, stderr)
	}
	d.answers("a flag before a variable", asked+" --key-file "+file, "run_count,run_success_rate\n1,1\n")
	d.answers("a profile of a flag before variables", asked+" --profile work", "run_count,run_success_rate\n1,1\n")
	t.Setenv("RUNLENS_PROFILE", "work")
	if code, _, _ := d.query(asked); code != exitFailed {
		t.Errorf("a key of the environment before that of a profile of the environment: %d", code)
	}
	t.Setenv("RUNLENS_PROFILE", "")
	t.Setenv("RUNLENS_URL", "http://127.0.0.1:1")
	if code, _, stderr := d.query(asked); code != exitFailed || !strings.Contains(stderr, "no server answers at") {
		t.Errorf("an address of the environment before that of the profile: %d %s", code, stderr)
	}
	d.answers("an address of a flag before a variable", asked+" --url "+d.base+" --key-file "+file,
		"run_count,run_success_rate\n1,1\n")
	t.Setenv("RUNLENS_URL", "")
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	if code, _, stderr := d.query(asked); code != exitFailed || strings.Contains(stderr, d.base) {
		t.Errorf("without a profile a key goes to the default address: %d %s", code, stderr)
	}
	t.Setenv("XDG_CONFIG_HOME", config)
	t.Setenv("RUNLENS_API_KEY", "")
	path := filepath.Join(os.Getenv("XDG_CONFIG_HOME"), "runlens/profiles.yaml")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("permissions %v, %v", info.Mode(), err)
	}
	must(t, os.Chmod(path, 0o644))
	if code, _, stderr := d.query(asked); code != exitUsage || !strings.Contains(stderr, "chmod 600") {
		t.Errorf("a file that others read: %d %s", code, stderr)
	}
	must(t, os.Chmod(path, 0o600))
	if code, _, _ := command(t, "", "logout", "--profile", "work"); code != 0 {
		t.Error(code)
	}
	if code, _, _ := command(t, "", "logout", "--profile", "work"); code != exitUsage {
		t.Error(code)
	}
	d.answers("the other one stays", asked, "run_count,run_success_rate\n1,1\n")
}
