package main

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// A server that answers some questions, refuses others and reaches the limit of a key's rate: runlens usage has the
// figures that a person counts, and nothing that names anyone.
func TestUsage(t *testing.T) {
	flags := store(t)
	const stored = 3000 // runs of globex in January, which a totals query reads
	var lines strings.Builder
	for n := range stored {
		fmt.Fprintf(&lines, `{"record":"run","organization_id":"globex","run_id":"0b7e4d2c-9f3a-4c61-8a55-%012d",`+
			`"agent_id":"0b7e4d2c-9f3a-4c61-8a55-2f1d6c9e7b10","status":"COMPLETED","created_at":"2026-01-05T09:30:00Z",`+
			`"updated_at":"2026-01-31T09:31:00Z"}`+"\n", n)
	}
	if code, _, stderr := command(t, lines.String(), append([]string{"ingest", "-"}, flags...)...); code != 0 {
		t.Fatal(stderr)
	}
	base, admin, stop := started(t, append([]string{"--rate-limit-per-minute", "5"}, flags...)...)
	frequent, key := createKey(t, flags)
	bare, bareKey := createKey(t, flags, "--scopes", "")
	globex, globexKey := createKey(t, flags, "--org", "globex")
	person := strings.Replace(totals, `"range"`, `"dimensions":["user_identifier"],"filters":[{"member":`+
		`"user_identifier","op":"in","values":["ada@example.com","+15550100004"]}],"limit":7,"range"`, 1)
	unknown := strings.Replace(totals, "run_count", "ada@example.com", 1)
	ask := func(key, body string, want int) {
		t.Helper()
		if code, answer := post(t, base, key, body); code != want {
			t.Errorf("%d %s, want %d", code, answer, want)
		}
	}
	for range 3 {
		ask(key, totals, 200)
	}
	ask(key, person, 200)
	ask(key, unknown, 400)
	for range 4 {
		ask(key, totals, 429)
	}
	ask(bareKey, totals, 403)
	ask(globexKey, totals, 200)
	// Who sends these is unknown, or it is no question.
	ask("", totals, 401)
	ask(globexKey, "{", 400)
	if code, _ := get(t, base+"/api/v1/analytics/catalog", globexKey); code != 200 {
		t.Error(code)
	}
	if _, metrics := get(t, admin+"/metrics", ""); !strings.Contains(metrics, "\nrunlens_usage_lost_total 0\n") {
		t.Error("no metric counts what is lost")
	}
	stop()

	usage := func(args ...string) (rows []string) {
		t.Helper()
		code, out, stderr := command(t, "", append(append([]string{"usage", "--output", "csv"}, args...), flags...)...)
		if code != 0 {
			t.Fatal(code, stderr)
		}
		return strings.Split(strings.TrimSpace(out), "\n")
	}
	for _, c := range []struct{ args, want string }{
		{"--by organization", "organization_id,questions,refused,limited|acme,10,6,4|globex,1,0,0"},
		{"--by key", "organization_id,key_id,questions,refused,limited|acme," + frequent + ",9,5,4|" +
			inOrder("acme,"+bare+",1,1,0", "globex,"+globex+",1,0,0")},
		{"--by shape", "model,metrics,dimensions,filters,days,timezone,limit,questions,refused,limited|" +
			"agent_runs,run_count,,,31,UTC,100,4,0,0|agent_runs,run_count,user_identifier,user_identifier in,31,UTC,7,1,0,0"},
		{"--by question --org globex", "organization_id,model,metrics,dimensions,filters,days,timezone,limit,questions," +
			"refused,limited|globex,agent_runs,run_count,,,31,UTC,100,1,0,0"},
		{"--by refusal", "organization_id,code,limit_hit,questions,refused,limited|acme,rate_limited,rate,4,4,4|" +
			"acme,insufficient_scope,,1,1,0|acme,unknown_member,,1,1,0"},
		{"--by key --org acme --limit 1", "organization_id,key_id,questions,refused,limited|acme," + frequent + ",9,5,4"},
		{"--key-id " + globex, "organization_id,questions,refused,limited|globex,1,0,0"},
		{"--last 0s", "organization_id,questions,refused,limited"},
	} {
		rows := usage(strings.Fields(c.args)...)
		want := strings.Split(c.want, "|")
		if len(rows) != len(want) {
			t.Errorf("usage %s: %q, want %q", c.args, rows, want)
			continue
		}
		for i := range want {
			if !strings.HasPrefix(rows[i], want[i]+",") {
				t.Errorf("usage %s: %q, want %q and more", c.args, rows[i], want[i])
			}
		}
	}
	// organization_id,questions,refused,limited,rows_read,bytes_read,processor_ms,mean_ms,p95_ms,max_ms
	cells := strings.Split(usage("--org", "globex")[1], ",")
	// Beside the runs it reads the store's clock and sizes.
	if read, err := strconv.Atoi(cells[4]); err != nil || read < stored || read > stored+500 {
		t.Errorf("%s rows were read, %v, want %d and a few", cells[4], err, stored)
	}
	if mean, err := strconv.ParseFloat(cells[7], 64); err != nil || mean <= 0 || cells[7] != cells[9] {
		t.Errorf("one answer took %s ms in the mean and %s at most, %v", cells[7], cells[9], err)
	}
	// People read headings of words, and times to a tenth of a millisecond.
	code, out, stderr := command(t, "", append([]string{"usage", "--org", "globex"}, flags...)...)
	if form := regexp.MustCompile(`^ORGANIZATION ID +QUESTIONS +REFUSED +LIMITED +ROWS READ +BYTES READ +PROCESSOR MS +` +
		`MEAN MS +P95 MS +MAX MS\nglobex +1 +0 +0 +\d+ +\d+ +-( +\d+(\.\d)?){3}\n$`); code != 0 || !form.MatchString(out) {
		t.Errorf("%d:\n%s%s", code, out, stderr)
	}

	conn, err := openStore(context.Background(), storeFlags{DataDir: flags[1], EngineLib: flags[3]},
		slog.New(slog.DiscardHandler))
	must(t, err)
	defer conn.Close()
	var named uint64
	if err := conn.Conn().QueryRow(context.Background(), "SELECT countIf(toString(tuple(*)) ILIKE '%ada@%' OR "+
		"toString(tuple(*)) LIKE '%+1555%') FROM usage_log").Scan(&named); err != nil || named > 0 {
		t.Errorf("%d rows name a person, %v", named, err)
	}
}

// inOrder joins rows of equal figures as they are ordered.
func inOrder(a, b string) string { return min(a, b) + "|" + max(a, b) }

func TestUsageRefusesWrongFlags(t *testing.T) {
	for flags, want := range map[string]string{
		"--org a/b":                   "--org must be",
		"--last soon":                 "--last \"soon\" is no duration",
		"--limit 0":                   "--limit must be 1 to 1000000",
		"--limit 9223372036854775807": "--limit must be 1 to 1000000",
		"--by day":                    "--by must be one of",
	} {
		code, _, stderr := command(t, "", append([]string{"usage"}, strings.Fields(flags)...)...)
		if code != exitUsage || !strings.Contains(stderr, want) {
			t.Errorf("usage %s: %d %s", flags, code, stderr)
		}
	}
}
