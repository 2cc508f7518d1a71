package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// An explanation is of the query that runlens query sends, however it is given, and of what a server does with it.
func TestExplain(t *testing.T) {
	flags := store(t)
	ingestTwoDays(t, flags)
	home := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", home)
	body := filepath.Join(home, "body.json")
	const byAgent = `{"model":"agent_runs","metrics":["run_count"],"dimensions":["agent_id"],"filters":[{"member":` +
		`"user_type","op":"in","values":["internal","x"]}],"range":{"start":"2026-01-01","end":"2026-01-31",` +
		`"timezone":"Europe/Stockholm"},"limit":9}`
	must(t, os.WriteFile(body, []byte(byAgent), 0o600))
	if err := os.WriteFile(filepath.Join(home, "saved.yaml"), []byte("model: agent_runs\nmetrics: [run_count]\n"+
		"dimensions: [agent_id]\nfilter: ['user_type=internal,x']\nstart: 2026-01-01\nend: 2026-01-31\n"+
		"timezone: Europe/Stockholm\nlimit: 9\noutput: plot\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	explain := func(args ...string) (code int, out, stderr string) {
		t.Helper()
		return command(t, "", append(append([]string{"explain", "--org", "acme"}, args...), flags...)...)
	}
	days := []string{"--start", "2026-01-01", "--end", "2026-01-31"}
	stockholm := append([]string{"--timezone", "Europe/Stockholm"}, days...)
	questions := [][]string{
		{"--body", body},
		{"@" + filepath.Join(home, "saved.yaml")},
		append([]string{"--metrics", "run_count", "--dimensions", "agent_id", "--filter", "user_type=internal,x",
			"--limit", "9", "--compare", "previous"}, stockholm...),
	}
	var asked any
	must(t, json.Unmarshal([]byte(byAgent), &asked))
	asked.(map[string]any)["order"] = []any{}
	for _, question := range questions {
		code, out, stderr := explain(append(question, "--output", "json")...)
		var got struct {
			OrganizationID string `json:"organization_id"`
			Query          any
			Rows           int
			SQL            string
			Plan           []string
			Params         []struct {
				Name  string
				Value any
			}
			Strategy struct{ Reads, Reason, Page string }
			Tables   []struct {
				Table              string
				Parts, Marks, Rows uint64
			}
			Read         struct{ Rows, Bytes uint64 }
			Milliseconds struct{ Facts, ClickHouse, Decoding, Total float64 }
		}
		if err := json.Unmarshal([]byte(out), &got); code != 0 || err != nil {
			t.Fatal(question, code, err, stderr)
		}
		query := got.Query.(map[string]any)
		if question[0] == "--metrics" {
			// A comparison reads pages of 500.
			if query["limit"] != 500. {
				t.Errorf("%q: limit %v", question, query["limit"])
			}
			query["limit"] = 9.
		}
		if !reflect.DeepEqual(got.Query, asked) || got.OrganizationID != "acme" {
			t.Errorf("%q: %v, want %v", question, got.Query, asked)
		}
		if got.Rows != 0 || got.Strategy.Reads != "base" || got.Strategy.Reason != "rows_below_threshold" ||
			!strings.Contains(got.SQL, "FROM runs FINAL") || len(got.Plan) == 0 {
			t.Errorf("%q: %s", question, out)
		}
		found := false
		for _, p := range got.Params {
			found = found || p.Name == "filter_0" && reflect.DeepEqual(p.Value, []any{"internal", "x"})
		}
		read := false
		for _, table := range got.Tables {
			read = read || table.Table == "runs" && table.Rows == 2 && table.Parts == 1 && table.Marks == 1
		}
		ms := got.Milliseconds
		if !found || !read || got.Read.Rows < 2 || got.Read.Bytes == 0 || ms.Facts <= 0 || ms.ClickHouse <= 0 ||
			ms.Total < ms.Facts+ms.ClickHouse {
			t.Errorf("%q: %s", question, out)
		}
	}
	// Weeks are asked for one by one; this is the first.
	code, out, _ := explain(append([]string{"--metrics", "run_count", "--grain", "week"}, days...)...)
	for _, want := range []string{`"start":"2026-01-01","end":"2026-01-04"`, "1 row as of", "strategy  base, page single",
		"rejected  rollup_aggregates (rows_below_threshold): ", "FROM runs FINAL", "organization = \"acme\"",
		"ReadFromMergeTree"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("exit code %d, without %q:\n%s", code, want, out)
		}
	}
	for want, args := range map[string][]string{
		"unknown_member at run_cont":                  {"--metrics", "run_cont"},
		"--body is a whole request; leave out --last": {"--body", body, "--last", "3d"},
		"--metrics is needed":                         nil,
	} {
		if code, _, stderr := explain(args...); code != exitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%q: %d %s", args, code, stderr)
		}
	}
}
