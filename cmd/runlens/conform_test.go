package main

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/runlens/runlens/testdata/queries"
)

// Cases are asked over HTTP after an ingest, a server that is wrong is found out, and nothing of it stays in the store.
func TestConform(t *testing.T) {
	flags := store(t)
	base, _, _ := started(t, flags...)
	prove := func(url string, args ...string) (int, conformReport, string) {
		t.Helper()
		code, out, stderr := command(t, "", append(append([]string{"conform", "--json", "--url", url}, args...), flags...)...)
		var report conformReport
		if err := json.Unmarshal([]byte(out), &report); out != "" && err != nil {
			t.Fatal(err, out)
		}
		return code, report, stderr
	}
	text, err := queries.Files.ReadFile("pages.test")
	must(t, err)
	cases := strings.Count(string(text), "\nquery ")
	code, report, stderr := prove(base, "--only", "pages")
	if code != 0 || report.Cases != cases || len(report.Failed) > 0 {
		t.Errorf("exit code %d, %+v, want %d cases\n%s", code, report, cases, stderr)
	}

	// A server that is wrong in one way is found out, by the rules that it breaks.
	target, err := url.Parse(base)
	must(t, err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ModifyResponse = func(r *http.Response) error {
		body, err := io.ReadAll(r.Body)
		body = bytes.ReplaceAll(body, []byte(`"2010-11-06"`), []byte(`"2010-11-07"`))
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		return err
	}
	wrong := httptest.NewServer(proxy)
	defer wrong.Close()
	code, report, _ = prove(wrong.URL, "--only", "ranges")
	if code != exitFailed || len(report.Failed) != 3 || report.Failed[0].Rules[0] != "contract 4.8" {
		t.Errorf("a wrong server: exit code %d, %+v", code, report)
	}
	var shown bytes.Buffer
	if err := report.print(&shown, false); err != nil || !strings.Contains(shown.String(), "3 answers DIFFER") ||
		!strings.Contains(shown.String(), "ranges.test line ") {
		t.Errorf("%v\n%s", err, shown.String())
	}

	for name, c := range map[string]struct {
		url, only string
		code      int
		says      string
	}{
		"nobody":       {"http://" + freeAddress(t), "grammar", exitFailed, "no server answers"},
		"no address":   {"ftp://x", "grammar", exitUsage, "is no address"},
		"other script": {base, "grammer", exitUsage, "is none of agent_runs, "},
	} {
		if code, _, stderr := prove(c.url, "--only", c.only); code != c.code || !strings.Contains(stderr, c.says) {
			t.Errorf("%s: exit code %d, want %d and %q\n%s", name, code, c.code, c.says, stderr)
		}
	}

	quiet := slog.New(slog.DiscardHandler)
	keeper, err := openMigrated(t.Context(), storeFlags{DataDir: flags[1], EngineLib: flags[3]}, quiet)
	must(t, err)
	defer keeper.Close()
	for _, table := range []string{"runs", "attributions", "agents", "api_keys", "rollup_runs"} {
		var left uint64
		sql := "SELECT count() FROM " + table + " WHERE startsWith(organization_id, 'conform-')"
		if err := keeper.Conn().QueryRow(t.Context(), sql).Scan(&left); err != nil || left > 0 {
			t.Errorf("%d rows are left in %s: %v", left, table, err)
		}
	}
}
