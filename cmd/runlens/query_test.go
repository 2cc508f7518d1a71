package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xuri/excelize/v2"
)

// A desk is a server with records of acme, and the environment of a person who asks it.
type desk struct {
	t     *testing.T
	flags []string
	base  string
	key   string
}

// An office is a server that the desks of several organizations share.
type office struct {
	flags   []string
	base    string
	admin   string // may be empty
	browser tab    // of the console
}

// TestQuery has the tests of one server.
func TestQuery(t *testing.T) {
	o := office{flags: store(t)}
	o.base, o.admin, _ = started(t, append(o.flags, "--rate-limit-per-minute", "10000")...)
	for name, test := range map[string]func(*testing.T, office){
		"formats": queryFormats, "grain": queryGrain, "compare": queryCompare, "fill": queryFill, "files": queryFiles,
		"refusals": queryRefusals, "thresholds": queryThresholds, "saved questions": querySaved, "profiles": queryProfiles,
		"watch": queryWatch, "catalog": queryCatalog, "completion": queryCompletion, "shells": queryShells,
		"alerts": queryAlerts, "report": queryReport, "sheets": querySheets, "grafana": queryGrafana,
		"metabase": queryMetabase, "changes": queryChanges, "missing": queryMissing, "orgs": orgsList, "init": initFirst,
		"console": consoleCommand, "operator": adminOperator, "hostile": queryHostile,
	} {
		t.Run(name, func(t *testing.T) { test(t, o) })
	}
}

// desk stores records of an organization, and has commands ask with its key.
func (o office) desk(t *testing.T, organization string, records ...string) *desk {
	t.Helper()
	d := o.stored(t, organization, records...)
	d.use(t)
	return d
}

// use has commands ask with the desk's key, until the test ends.
func (d *desk) use(t *testing.T) {
	t.Setenv("RUNLENS_API_KEY", d.key)
	t.Setenv("RUNLENS_URL", d.base)
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
}

// stored stores records of an organization: runs as "DAY USER STATUS", others as they are ingested.
func (o office) stored(t *testing.T, organization string, records ...string) *desk {
	t.Helper()
	d := &desk{t: t, flags: o.flags, base: o.base}
	_, d.key = createKey(t, d.flags, "--org", organization)
	var lines strings.Builder
	for n, record := range records {
		if strings.HasPrefix(record, "{") {
			lines.WriteString(record + "\n")
			continue
		}
		fields := strings.Fields(record)
		fmt.Fprintf(&lines, `{"record":"run","organization_id":"%s","run_id":"0b7e4d2c-9f3a-4c61-8a55-%012d",`+
			`"agent_id":"0b7e4d2c-9f3a-4c61-8a55-2f1d6c9e7b10","status":"%s","initiator_identifier":"%s",`+
			`"initiator_type":"internal","created_at":"%sT09:30:00Z","updated_at":"2026-06-01T09:31:00Z"}`+"\n",
			organization, n, fields[2], fields[1], fields[0])
	}
	if code, _, stderr := command(t, lines.String(), append([]string{"ingest", "-"}, d.flags...)...); code != 0 {
		t.Fatal(stderr)
	}
	return d
}

// query runs the command with flags that are separated by spaces.
func (d *desk) query(flags string, more ...string) (code int, stdout, stderr string) {
	d.t.Helper()
	return command(d.t, "", append(append([]string{"query"}, strings.Fields(flags)...), more...)...)
}

// answers fails unless the command writes exactly this.
func (d *desk) answers(name, flags, want string) {
	d.t.Helper()
	if code, out, stderr := d.query(flags); code != 0 || out != want {
		d.t.Errorf("%s: exit code %d\n%s\nwant\n%s%s", name, code, out, want, stderr)
	}
}

const january = "--start 2026-01-01 --end 2026-01-31 --metrics run_count,run_success_rate "

func queryFormats(t *testing.T, o office) {
	d := o.desk(t, "formats", "2026-01-01 a@x.example COMPLETED", "2026-01-01 +15550100004 COMPLETED",
		"2026-01-02 a@x.example FAILED")
	d.answers("totals", january, "RUN_COUNT  RUN_SUCCESS_RATE\n        3            0.6667\n")
	d.answers("standard output", january+"-o -", "RUN_COUNT  RUN_SUCCESS_RATE\n        3            0.6667\n")
	d.answers("all rows", january+"--dimensions day --limit 1 --all", "DAY         RUN_COUNT  RUN_SUCCESS_RATE\n"+
		"2026-01-01          2                 1\n2026-01-02          1                 0\n")
	d.answers("csv", january+"--dimensions user_identifier --output csv",
		"user_identifier,user_name,run_count,run_success_rate\n+15550100004,,1,1\na@x.example,,2,0.5\n")
	d.answers("for spreadsheets", january+"--dimensions user_identifier --output csv --spreadsheet",
		"\ufeffuser_identifier,user_name,run_count,run_success_rate\n\"=\"\"+15550100004\"\"\",,1,1\na@x.example,,2,0.5\n")
	d.answers("top", january+"--dimensions day --order run_count:desc --limit 1 --output csv",
		"day,run_count,run_success_rate\n2026-01-01,2,1\n")
	d.answers("filtered", january+"--filter day=2026-01-02,2026-01-03 --filter user_type=internal --output csv",
		"run_count,run_success_rate\n1,0\n")
	d.answers("nothing yet", january+"--filter user_type=external --output ndjson",
		`{"run_count":0,"run_success_rate":null}`+"\n")
	d.answers("nothing alone", "--start 2026-01-01 --end 2026-01-31 --metrics run_success_rate --filter "+
		"user_type=external --output csv", "run_success_rate\n\"\"\n")
	d.answers("no rows", january+"--filter user_type=external --dimensions day --output markdown",
		"| day | run_count | run_success_rate |\n| --- | ---: | ---: |\n")
	d.answers("bars", january+"--dimensions user_type --output plot -q", "run_count\ninternal  "+strings.Repeat("█", 68)+
		" 3\n\nrun_success_rate\ninternal  "+strings.Repeat("█", 63)+" 0.6667\n")

	code, out, stderr := d.query(january + "--dimensions day --limit 1")
	if code != 0 || strings.Count(out, "\n") != 2 || !strings.Contains(stderr, "1 row as of 20") ||
		!strings.Contains(stderr, "further rows: --all") || !strings.Contains(stderr, "warning: Values of run_success_rate") {
		t.Errorf("a first row: %d\n%s%s", code, out, stderr)
	}
	if code, _, stderr := d.query(january + "--quiet"); code != 0 || stderr != "" {
		t.Errorf("quiet: %d %q", code, stderr)
	}
	if code, out, stderr := command(t, totals, "query", "--body", "-", "--output", "json"); code != 0 ||
		!strings.Contains(out, `"rows":[[3]]`) || !strings.Contains(out, `"cursor":null`) {
		t.Errorf("a body: %d %s%s", code, out, stderr)
	}
	if code, out, _ := command(t, firstDay+"}", "query", "--body", "-", "--output", "csv", "--all"); code != 0 ||
		out != "day,run_count\n2026-01-01,2\n2026-01-02,1\n" {
		t.Errorf("pages of a body: %d %s", code, out)
	}
	if code, out, _ := command(t, firstDay+"}", "query", "--body", "-", "--output", "json"); code != 0 ||
		!strings.Contains(out, `"rows":[["2026-01-01",2]]`) || strings.Contains(out, `"cursor":null`) {
		t.Errorf("a page of a body: %d %s", code, out)
	}
	t.Setenv("RUNLENS_API_KEY", "")
	file := fileOf(t, "key", []byte(d.key+"\n"))
	address := strings.TrimPrefix(d.base, "http://")
	code, out, _ = command(t, totals, "query", "--body", "-", "--output", "json", "--url", address, "--key-file", file)
	if code != 0 || !strings.Contains(out, `"rows":[[3]]`) {
		t.Errorf("a key from a file, an address without a scheme: %d %s", code, out)
	}
	if code, _, stderr := command(t, "", "query", "--metrics", "run_count"); code != exitUsage ||
		!strings.Contains(stderr, "RUNLENS_API_KEY") {
		t.Errorf("without a key: %d %s", code, stderr)
	}
}

// Weeks and months are asked for by themselves: distinct users of a week are not the sum of its days'.
func queryGrain(t *testing.T, o office) {
	d := o.desk(t, "grain", "2026-01-05 a@x.example COMPLETED", "2026-01-06 a@x.example COMPLETED",
		"2026-01-06 b@x.example FAILED", "2026-01-14 a@x.example RUNNING", "2025-12-31 c@x.example COMPLETED")
	weeks := "--start 2026-01-01 --end 2026-01-18 --metrics run_count,unique_initiator_count --output csv "
	d.answers("weeks", weeks+"--grain week", "week,run_count,unique_initiator_count\n2025-12-29,0,0\n2026-01-05,3,2\n"+
		"2026-01-12,1,1\n")
	d.answers("from Tuesday", weeks+"--grain week --week-start tuesday", "week,run_count,unique_initiator_count\n"+
		"2025-12-30,1,1\n2026-01-06,2,2\n2026-01-13,1,1\n")
	d.answers("months", strings.Replace(weeks, "2026-01-01", "2024-12-15", 1)+
		"--grain month --filter user_identifier=c@x.example,a@x.example", "month,run_count,unique_initiator_count\n"+
		"2024-12-01,0,0\n2025-01-01,0,0\n2025-02-01,0,0\n2025-03-01,0,0\n2025-04-01,0,0\n2025-05-01,0,0\n2025-06-01,0,0\n"+
		"2025-07-01,0,0\n2025-08-01,0,0\n2025-09-01,0,0\n2025-10-01,0,0\n2025-11-01,0,0\n2025-12-01,1,1\n2026-01-01,3,1\n")
	d.answers("by user", weeks+"--grain week --dimensions user_identifier --limit 1",
		"week,user_identifier,user_name,run_count,unique_initiator_count\n2026-01-05,a@x.example,,2,1\n"+
			"2026-01-12,a@x.example,,1,1\n")
	d.answers("top of each", weeks+"--grain week --dimensions user_identifier --order run_count:desc --limit 1",
		"week,user_identifier,user_name,run_count,unique_initiator_count\n2026-01-05,a@x.example,,2,1\n"+
			"2026-01-12,a@x.example,,1,1\n")
	d.answers("compared", weeks+"--start 2026-01-05 --grain week --compare previous",
		"week,run_count,run_count_previous,run_count_difference,run_count_percent,unique_initiator_count,"+
			"unique_initiator_count_previous,unique_initiator_count_difference,unique_initiator_count_percent\n"+
			"2026-01-05,3,1,2,200,2,1,1,100\n2026-01-12,1,3,-2,-66.67,1,2,-1,-50\n")
	// The week of the 5th is asked once: for itself, and for the week of the 12th.
	_, _, stderr := d.query(weeks + "--start 2026-01-05 --grain week --compare previous")
	if !strings.Contains(stderr, "3 pages") {
		t.Errorf("%s", stderr)
	}
	_, _, stderr = d.query(weeks + "--grain week --dimensions user_identifier --limit 1")
	if !strings.Contains(stderr, "further rows") ||
		!strings.Contains(stderr, "The week of 2025-12-29 is counted in part: 2026-01-01 to 2026-01-04.") ||
		strings.Contains(stderr, "2026-01-12 is counted in part") {
		t.Errorf("%s", stderr)
	}
}

func queryFill(t *testing.T, o office) {
	d := o.desk(t, "fill", "2026-01-02 a@x.example COMPLETED", "2026-01-04 a@x.example COMPLETED",
		"2026-01-01 b@x.example FAILED")
	days := "--start 2026-01-01 --end 2026-01-04 --output csv --fill --metrics run_count "
	d.answers("days", days+"--dimensions day --filter user_identifier=a@x.example",
		"day,run_count\n2026-01-01,0\n2026-01-02,1\n2026-01-03,0\n2026-01-04,1\n")
	d.answers("backwards", days+"--dimensions day --order day:desc --filter user_identifier=a@x.example "+
		"--metrics run_success_rate",
		"day,run_count,run_success_rate\n2026-01-04,1,1\n2026-01-03,0,\n2026-01-02,1,1\n2026-01-01,0,\n")
	d.answers("by user", days+"--dimensions day,user_identifier", "day,user_identifier,user_name,run_count\n"+
		"2026-01-01,a@x.example,,0\n2026-01-02,a@x.example,,1\n2026-01-03,a@x.example,,0\n2026-01-04,a@x.example,,1\n"+
		"2026-01-01,b@x.example,,1\n2026-01-02,b@x.example,,0\n2026-01-03,b@x.example,,0\n2026-01-04,b@x.example,,0\n")
	d.answers("nothing", days+"--dimensions day --filter user_identifier=nobody --limit 3",
		"day,run_count\n2026-01-01,0\n2026-01-02,0\n2026-01-03,0\n")
	d.answers("a group of nothing", days+"--dimensions user_identifier,day --filter user_identifier=nobody",
		"user_identifier,user_name,day,run_count\n")
}

// Files appear whole or not at all; identifiers in them stay text.
func queryFiles(t *testing.T, o office) {
	d := o.desk(t, "files", "2026-01-01 +15550100004 COMPLETED", "2026-01-01 007 COMPLETED")
	folder := t.TempDir()
	in := func(name string) string { return filepath.Join(folder, name) }
	for name, want := range map[string]string{"a.csv": "run_count", "a.md": "| run_count", "a.json": "{", "a.jsonl": "{",
		"a.txt": "RUN_COUNT", "a.parquet": "PAR1", "a.plot": "run_count"} {
		code, out, stderr := d.query("--metrics run_count --start 2026-01-01 --end 2026-01-31 -o " + in(name))
		content, err := os.ReadFile(in(name))
		if code != 0 || out != "" || err != nil || !strings.HasPrefix(string(content), want) {
			t.Errorf("%s: %d %s%s %.20q", name, code, out, stderr, content)
		}
	}
	if code, _, stderr := d.query(january + "--dimensions user_identifier -o " + in("users.xlsx")); code != 0 {
		t.Fatal(stderr)
	}
	book, err := excelize.OpenFile(in("users.xlsx"))
	must(t, err)
	defer book.Close()
	for cell, want := range map[string]string{"A2": "+15550100004", "A3": "007", "C3": "1"} {
		if got, err := book.GetCellValue("Rows", cell); err != nil || got != want {
			t.Errorf("%s holds %q, %v", cell, got, err)
		}
	}
	// A refused query leaves the old file as it is, and nothing beside it.
	must(t, os.Chmod(in("a.csv"), 0o640))
	before, _ := os.ReadFile(in("a.csv"))
	if code, _, _ := d.query("--metrics nothing -o " + in("a.csv")); code != exitUsage {
		t.Errorf("refused: %d", code)
	}
	if after, _ := os.ReadFile(in("a.csv")); string(after) != string(before) {
		t.Errorf("the file now holds %s", after)
	}
	if code, _, _ := d.query("--metrics run_count -o " + in("a.csv")); code != 0 {
		t.Error(code)
	}
	if info, err := os.Stat(in("a.csv")); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the permissions are %v, %v", info.Mode(), err)
	}
	if info, err := os.Stat(in("a.md")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("a new file's permissions are %v, %v", info.Mode(), err)
	}
	if left, _ := filepath.Glob(in("*.partial")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	for flags, says := range map[string]string{
		"-o " + in("a"):                                    "does not end in a format",
		"-o " + folder + " --output csv":                   "is a folder",
		"-o " + in("no/such.csv"):                          "-o",
		"-o " + in("a.csv") + " --key-file " + in("a.csv"): "is also read",
	} {
		if code, _, stderr := d.query("--metrics run_count " + flags); code != exitUsage || !strings.Contains(stderr, says) {
			t.Errorf("%s: %d %s", flags, code, stderr)
		}
	}
}
