package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestQueryCommand(t *testing.T) {
	flags := store(t)
	base, _, _ := started(t, flags...)
	_, key := createKey(t, flags)
	var lines strings.Builder
	for n, day := range []int{1, 1, 2} {
		fmt.Fprintf(
			&lines,
			`{"record":"run","organization_id":"acme","run_id":"0b7e4d2c-9f3a-4c61-8a55-2f1d6c9e7b1%d",`+
				`"agent_id":"0b7e4d2c-9f3a-4c61-8a55-2f1d6c9e7b10","status":"COMPLETED","initiator_type":"internal",`+
				`"created_at":"2026-01-0%dT09:30:00Z","updated_at":"2026-01-31T09:31:00Z"}`+"\n",
			n, day,
		)
	}
	if code, _, stderr := command(t, lines.String(), append([]string{"ingest", "-"}, flags...)...); code != 0 {
		t.Fatal(stderr)
	}
	january := []string{
		"--start",
		"2026-01-01",
		"--end",
		"2026-01-31",
		"--metrics",
		"run_count,run_success_rate",
		"--url",
		base,
	}
	t.Setenv("RUNLENS_API_KEY", key)
	for name, c := range map[string]struct {
		args []string
		out  string
	}{
		"totals": {nil, "RUN_COUNT  RUN_SUCCESS_RATE\n3          1\n"},
		"all pages": {[]string{"--dimensions", "day", "--limit", "1", "--all"}, "DAY         RUN_COUNT  " +
			"RUN_SUCCESS_RATE\n2026-01-01  2          1\n2026-01-02  1          1\n"},
		"csv": {[]string{"--dimensions", "agent_id", "--output", "csv"}, "agent_id,agent_name,run_count," +
			"run_success_rate\n0b7e4d2c-9f3a-4c61-8a55-2f1d6c9e7b10,,3,1\n"},
		"top": {[]string{"--dimensions", "day", "--order", "run_count:desc", "--limit", "1", "--output", "csv"},
			"day,run_count,run_success_rate\n2026-01-01,2,1\n"},
		"filtered": {[]string{"--filter", "day=2026-01-02,2026-01-03", "--filter", "user_type=internal", "--output", "csv"},
			"run_count,run_success_rate\n1,1\n"},
		"plot": {[]string{"--dimensions", "day", "--output", "plot"}, "            run_count\n2026-01-01  " +
			"" + strings.Repeat("█", 50) + " 2\n2026-01-02  " + strings.Repeat("█", 25) + " 1\n"},
		"nothing yet": {[]string{"--filter", "user_type=external", "--output", "csv"}, "run_count,run_success_rate\n0,\n"},
	} {
		code, out, stderr := command(t, "", append(append([]string{"query"}, january...), c.args...)...)
		if code != 0 || out != c.out {
			t.Errorf("%s: exit code %d\n%s\nwant\n%s%s", name, code, out, c.out, stderr)
		}
	}
	if code, out, _ := command(t, totals, "query", "--body", "-", "--output", "json", "--url", base); code != 0 ||
		!strings.Contains(out, `"rows":[[3]]`) {
		t.Errorf("a body: %d %s", code, out)
	}
	if code, _, stderr := command(t, "", append([]string{"query", "--dimensions", "nothing"},
		january...)...); code != exitFailed ||
		!strings.Contains(stderr, "unknown_member at nothing") {
		t.Errorf("refused: %d %s", code, stderr)
	}
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("RUNLENS_API_KEY", "")
	if code, out, _ := command(t, totals, "query", "--body", "-", "--output", "json", "--url", base, "--key-file",
		file); code != 0 ||
		!strings.Contains(out, `"rows":[[3]]`) {
		t.Errorf("a key from a file: %d %s", code, out)
	}
	if code, _, stderr := command(t, "", "query", "--url", base, "--metrics", "run_count"); code != exitUsage ||
		!strings.Contains(stderr, "RUNLENS_API_KEY") {
		t.Errorf("without a key: %d %s", code, stderr)
	}
}
