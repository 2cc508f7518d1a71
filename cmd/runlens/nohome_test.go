package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Who has no home, as a service or a container may, asks with an address and a key: only what needs a place there
// fails, and says what to name instead.
func TestWithoutHome(t *testing.T) {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodPost {
			io.WriteString(w, `{"columns":[{"name":"run_count","type":"number","member":"run_count"}],"rows":[[7]]}`)
			return
		}
		io.WriteString(w, `{"models":[{"name":"agent_runs","metrics":[{"name":"run_count","type":"number"}]}]}`)
	}))
	defer api.Close()
	dir := t.TempDir()
	t.Chdir(dir)
	for name, value := range map[string]string{"XDG_CONFIG_HOME": "", "HOME": "", "RUNLENS_URL": api.URL,
		"RUNLENS_API_KEY": "key"} {
		t.Setenv(name, value)
	}
	const board = "panels: [{question: {metrics: [run_count]}}]\n"
	for name, content := range map[string]string{"runs.yaml": "metrics: [run_count]\n", "board.yaml": board} {
		must(t, os.WriteFile(name, []byte(content), 0o600))
	}
	ask := []string{"query", "--metrics", "run_count", "--today"}
	for _, c := range []struct {
		arguments []string
		code      int
		says      string
	}{
		{ask, 0, "7"},
		{[]string{"query", "@./runs.yaml", "--today"}, 0, "7"},
		{[]string{"query", "@runs", "--today"}, exitUsage, "there is no place for saved questions"},
		{[]string{"query", "@./runs.yaml", "--today", "-o", "runs.yaml", "--output", "csv"}, exitUsage, "is also read"},
		{append(ask, "--save", "./more.yaml"), 0, "7"},
		{append(ask, "--save", "more"), exitUsage, "name a file of questions, such as ./more.yaml"},
		{[]string{"mcp"}, 0, ""},
		{[]string{"console", "--dashboard", "board.yaml", "--export", "page.html"}, 0, ""},
		{[]string{"console", "--share", "127.0.0.1:0"}, exitFailed, "there is no place for saved questions"},
	} {
		code, out, stderr := command(t, "", c.arguments...)
		if code != c.code || !strings.Contains(out+stderr, c.says) {
			t.Errorf("%s: exit code %d, %s%s", c.arguments, code, out, stderr)
		}
	}
	names, _ := filepath.Glob("*")
	if got := strings.Join(names, " "); got != "board.yaml more.yaml page.html runs.yaml" {
		t.Errorf("the folder has %s", got)
	}
}

// What could not keep a key afterwards copies nothing, and makes no key that nobody would have.
func TestInitWithoutHome(t *testing.T) {
	flags := store(t)
	records := fileOf(t, "a.ndjson", []byte(agentsNDJSON))
	for config, says := range map[string]string{
		"": "neither $XDG_CONFIG_HOME nor $HOME are defined", "/proc/nobody": "/proc/nobody: no such file",
		fileOf(t, "file", nil): "not a directory",
	} {
		t.Setenv("HOME", "")
		t.Setenv("XDG_CONFIG_HOME", config)
		code, out, stderr := command(t, "", append([]string{"init", "--files", records}, flags...)...)
		if code != exitUsage || out != "" || !strings.Contains(stderr, "the key needs a place: ") ||
			!strings.Contains(stderr, says) {
			t.Errorf("%q: %d %s%s", config, code, out, stderr)
		}
	}
	if code, out, stderr := command(t, "", append([]string{"orgs", "list"}, flags...)...); code != exitDone ||
		!strings.Contains(out+stderr, "The store is empty") {
		t.Errorf("orgs list: %d %s%s", code, out, stderr)
	}
}
