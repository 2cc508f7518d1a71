package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// recipes are in deploy/recipes. What they say is run as it is written there: only the server is another one.
const recipes = "../../deploy/recipes"

// blocks are the blocks of code of a language in a recipe.
func blocks(t *testing.T, recipe, language string) (found []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(recipes, recipe))
	must(t, err)
	fence := regexp.MustCompile("(?ms)^( *)```" + language + "\n(.*?)^ *```$")
	for _, match := range fence.FindAllStringSubmatch(string(text), -1) {
		found = append(found, strings.ReplaceAll("\n"+match[2], "\n"+match[1], "\n")[1:])
	}
	if len(found) == 0 {
		t.Fatalf("%s has no %s", recipe, language)
	}
	return found
}

// A workbench has the programs of the recipes in its PATH: runlens, and stand-ins that keep what they are given.
type workbench struct {
	*desk
	folder string
}

func (o office) workbench(t *testing.T, organization string, runs ...string) *workbench {
	t.Helper()
	w := &workbench{o.desk(t, organization, runs...), t.TempDir()}
	t.Setenv("PATH", filepath.Join(w.folder, "bin")+":"+os.Getenv("PATH"))
	for name, text := range map[string]string{
		"bin/runlens": "#!/bin/sh\n" + commandVariable + "=1 exec '" + os.Args[0] + "' \"$@\"\n",
		"bin/mail":    "#!/bin/sh\n{ printf '<%s>' \"$@\"; echo; cat; } > sent\n",
		"bin/logger":  "#!/bin/sh\nprintf '<%s>' \"$@\" > sent\n",
		"runlens.key": w.key,
	} {
		path := filepath.Join(w.folder, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, []byte(text), 0o700))
	}
	return w
}

// sh runs a script; said is what it writes.
func (w *workbench) sh(script string) (said string, err error) {
	w.t.Helper()
	command := exec.CommandContext(w.t.Context(), "sh", "-e", "-c",
		strings.ReplaceAll(script, "https://analytics.example.com", w.base))
	command.Dir = w.folder
	out, err := command.CombinedOutput()
	return string(out), err
}

// sent is what a stand-in was given since the last call.
func (w *workbench) sent() string {
	path := filepath.Join(w.folder, "sent")
	text, _ := os.ReadFile(path)
	os.Remove(path)
	return string(text)
}

// An alert speaks only where its condition holds.
func queryAlerts(t *testing.T, o office) {
	today := time.Now().UTC().Format(time.DateOnly)
	w := o.workbench(t, "alerts", today+" a@x.example COMPLETED", today+" a@x.example FAILED")
	setup := blocks(t, "alerts.md", "sh")
	t.Setenv("HOME", t.TempDir()) // of the file of --on-change
	t.Setenv("RUNLENS_API_KEY", "")
	t.Setenv("RUNLENS_URL", "")
	if out, err := w.sh(setup[0]); err != nil || !strings.Contains(out, "saved as") {
		t.Fatalf("%v: %s", err, out)
	}
	var said []string
	for line := range strings.SplitSeq(strings.TrimSpace(blocks(t, "alerts.md", "cron")[0]), "\n") {
		if scheduled := strings.SplitN(line, " ", 6); len(scheduled) == 6 { // minute to day of week, and the command
			out, _ := w.sh(scheduled[5])
			said = append(said, out)
		}
	}
	const agent = "0b7e4d2c-9f3a-4c61-8a55-2f1d6c9e7b10"
	wants := []string{
		"threshold: run_success_rate < 0.9: the value of agent_id " + agent,
		"threshold: run_count == 0: the value is 0\n",
	}
	for i, want := range wants {
		if len(said) != len(wants) || !strings.HasPrefix(said[i], want) || strings.Count(said[i], "\n") != 1 {
			t.Errorf("cron would mail %q, want %q", said, want)
		}
	}
	if out, err := w.sh(setup[1]); err != nil || out != "" || !strings.HasPrefix(w.sent(), "<-t><runlens><threshold: ") {
		t.Errorf("%v: %s", err, out)
	}
}

// The report is of last week, Monday to Sunday.
func queryReport(t *testing.T, o office) {
	now := time.Now().UTC()
	sunday := now.AddDate(0, 0, -1-(int(now.Weekday())+6)%7)
	day := func(before int) string { return sunday.AddDate(0, 0, -before).Format(time.DateOnly) }
	w := o.workbench(t, "report",
		day(-1)+" a@x.example COMPLETED", // Monday of this week
		day(0)+" a@x.example COMPLETED", day(6)+" b@x.example FAILED",
		day(7)+" a@x.example COMPLETED") // Sunday of the week before
	if out, err := w.sh(blocks(t, "report.md", "sh")[0]); err != nil || out != "" {
		t.Fatalf("%v: %s", err, out)
	}
	const agent = "0b7e4d2c-9f3a-4c61-8a55-2f1d6c9e7b10"
	sent := w.sent()
	head, table, _ := strings.Cut(sent, "\n")
	if head != "<-s><Agent runs, week to "+day(0)+"><team@example.com>" {
		t.Errorf("the mail is %s", head)
	}
	lines := strings.Split(table, "\n")
	if len(lines) != 4 || !strings.HasPrefix(lines[0], "| agent_id | agent_name | run_count | run_count_previous |") ||
		!strings.HasPrefix(lines[2], "| "+agent+" | - | 2 | 1 | 1 | ") {
		t.Errorf("the mail has\n%s", table)
	}
}

// The script fills a sheet, with stand-ins for Google's services, over pages of two rows.
func querySheets(t *testing.T, o office) {
	w := o.workbench(t, "sheets", "2026-01-05 +15550100004 COMPLETED", "2026-01-05 a@x.example COMPLETED",
		"2026-01-06 a@x.example RUNNING")
	script := strings.Replace(blocks(t, "google-sheets.md", "js")[0], "limit: 500", "limit: 2", 1)
	services, err := os.ReadFile("testdata/sheets.js")
	must(t, err)
	path := filepath.Join(w.folder, "script.js")
	must(t, os.WriteFile(path, append(services, script+"\nfillSheet();\n"...), 0o600))
	out, err := exec.CommandContext(t.Context(), "node", path).Output()
	const text, general = `"@","@","General","General"`, `"General"`
	want := `{"formats":[[` + general + "," + text + "],[" + general + "," + text + "],[" + general + "," + text + "],[" +
		general + "," + text + `]],"values":[["day","user_identifier","user_name","run_count","run_success_rate"],` +
		`["2026-01-05","+15550100004","",1,1],["2026-01-05","a@x.example","",1,1],["2026-01-06","a@x.example","",1,""]]}` +
		"\n"
	if err != nil || string(out) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, out, want)
	}
}

// The body and the selector of the panel give what its columns are made of.
func queryGrafana(t *testing.T, o office) {
	w := o.workbench(t, "grafana", "2026-01-05 a@x.example COMPLETED", "2026-01-05 a@x.example FAILED",
		"2026-01-06 a@x.example RUNNING")
	body := blocks(t, "grafana.md", "json")[0]
	body = strings.Replace(body, "${__timeFrom:date:YYYY-MM-DD}", "2026-01-01", 1)
	body = strings.Replace(body, "${__timeTo:date:YYYY-MM-DD}", "2026-01-31", 1)
	code, answer := post(t, w.base, w.key, body)
	if code != 200 || !json.Valid([]byte(answer)) {
		t.Fatal(code, answer)
	}
	jq, err := exec.LookPath("jq")
	if err != nil {
		t.Skip("jq is not installed: the selector is not tried")
	}
	command := exec.CommandContext(t.Context(), jq, "-c", blocks(t, "grafana.md", "jq")[0])
	command.Stdin = strings.NewReader(answer)
	out, err := command.Output()
	const want = `{"day":"2026-01-05","runs":2,"failed":1,"success":0.5}` + "\n" +
		`{"day":"2026-01-06","runs":1,"failed":0,"success":null}` + "\n"
	if err != nil || string(out) != want {
		t.Errorf("%v\n%s", err, out)
	}
}

// The export has the columns of the table that it is loaded into.
func queryMetabase(t *testing.T, o office) {
	day := time.Now().UTC().AddDate(0, 0, -3).Format(time.DateOnly)
	w := o.workbench(t, "metabase", day+" a@x.example COMPLETED", day+" a@x.example FAILED")
	if out, err := w.sh(blocks(t, "metabase.md", "sh")[0]); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	got, err := os.ReadFile(filepath.Join(w.folder, "runs.csv"))
	want := "day,agent_id,agent_name,run_count,failed_run_count,run_success_rate\n" +
		day + ",0b7e4d2c-9f3a-4c61-8a55-2f1d6c9e7b10,,2,1,0.5\n"
	if err != nil || string(got) != want {
		t.Errorf("%v\n%s", err, got)
	}
	var columns []string
	sql := blocks(t, "metabase.md", "sql")[0]
	for _, column := range regexp.MustCompile(`(\w+) (?:date|uuid|text|bigint|double)`).FindAllStringSubmatch(sql, -1) {
		columns = append(columns, column[1])
	}
	if head, _, _ := strings.Cut(want, "\n"); strings.Join(columns, ",") != head {
		t.Errorf("the table has the columns %q", columns)
	}
}
