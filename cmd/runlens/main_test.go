package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"github.com/runlens/runlens/olap/clickhouse/clickhousetest"
)

// command runs one command line as main does.
func command(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = run(context.Background(), args, streams{strings.NewReader(stdin), &out, &err})
	return code, out.String(), err.String()
}

// store are the flags of an embedded engine of the test's own, and a process that keeps it running.
func store(t *testing.T) []string {
	t.Helper()
	dir, err := os.MkdirTemp("", "runlens-test-")
	if err != nil {
		t.Fatal(err)
	}
	// The engine ends a moment after its last user, and writes until then.
	t.Cleanup(func() {
		for deadline := time.Now().Add(time.Minute); os.RemoveAll(dir) != nil && time.Now().Before(deadline); {
			time.Sleep(10 * time.Millisecond)
		}
	})
	flags := []string{"--data-dir", dir, "--engine-lib", clickhousetest.Library()}
	keeper, err := openMigrated(context.Background(), storeFlags{DataDir: flags[1], EngineLib: flags[3]}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { keeper.Close() })
	return flags
}

// started runs a whole server with the given flags until the test ends or stop is called.
func started(t *testing.T, flags ...string) (base, admin string, stop func()) {
	t.Helper()
	var c cli
	parser, err := kong.New(&c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse(append([]string{"serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"}, flags...)); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	a, err := startApp(context.Background(), c.Serve, slog.New(slog.NewJSONHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	closed := false
	stop = func() {
		if closed {
			return
		}
		closed = true
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := a.Close(ctx); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	_, rest, _ := strings.Cut(log.String(), `"msg":"serving the admin address","address":"`)
	address, _, _ := strings.Cut(rest, `"`)
	return "http://" + a.Address(), "http://" + address, stop
}

func get(t *testing.T, url, key string) (int, string) {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+key)
	return send(t, request)
}

func post(t *testing.T, base, key, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequest(http.MethodPost, base+"/api/v1/analytics/query", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+key)
	return send(t, request)
}

func send(t *testing.T, request *http.Request) (int, string) {
	t.Helper()
	request.Close = true // an idle connection would delay the drain
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func createKey(t *testing.T, flags []string, more ...string) (id, key string) {
	t.Helper()
	code, out, errs := command(t, "", append(append([]string{"keys", "create", "--org", "acme", "--output", "json"}, flags...), more...)...)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	var created map[string]any
	if err := json.Unmarshal([]byte(out), &created); err != nil {
		t.Fatal(err, out)
	}
	return created["key_id"].(string), created["key"].(string)
}

// Contract 2: wrong usage is 2, with one clear line that says what to do.
func TestUsageErrors(t *testing.T) {
	folder := t.TempDir()
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"no command":           {nil, "expected one of"},
		"unknown command":      {[]string{"bake"}, "bake"},
		"unknown flag":         {[]string{"serve", "--colour"}, "--colour"},
		"rate of nothing":      {[]string{"serve", "--rate-limit-per-minute", "0"}, "--rate-limit-per-minute must be greater than 0"},
		"half of TLS":          {[]string{"serve", "--tls-cert", "x"}, "--tls-key"},
		"bad proxy":            {[]string{"serve", "--trusted-proxies", "proxy"}, "--trusted-proxies"},
		"one address twice":    {[]string{"serve", "--admin-listen", "127.0.0.1:8080"}, "--admin-listen"},
		"organization missing": {[]string{"keys", "create"}, "--org"},
		"bad organization":     {[]string{"keys", "create", "--org", "a b"}, "--org must be 1 to 64"},
		"unknown scope":        {[]string{"keys", "create", "--org", "acme", "--scopes", "write"}, "write"},
		"no file":              {[]string{"ingest"}, "file"},
		"missing file":         {[]string{"ingest", filepath.Join(folder, "nothing")}, "there is no file"},
		"a folder":             {[]string{"ingest", folder}, "is a folder"},
		"bad choice":           {[]string{"ingest", "--on-error", "panic", "-"}, "--on-error"},
		"no step down":         {[]string{"migrate", "down", "--steps", "0"}, "--steps"},
	} {
		t.Run(name, func(t *testing.T) {
			code, _, stderr := command(t, "", c.args...)
			if code != exitUsage || !strings.Contains(stderr, c.says) {
				t.Errorf("exit code %d, want 2 and %q:\n%s", code, c.says, stderr)
			}
		})
	}
}

// Every command explains itself with an example.
func TestHelp(t *testing.T) {
	for _, args := range [][]string{{"serve"}, {"query"}, {"login"}, {"logout"}, {"ingest"}, {"migrate"}, {"keys", "create"}, {"keys", "list"}, {"keys", "revoke"}, {"keys", "rotate"}, {"keys", "rotate-cursor-secret"}, {"audit"}, {"engine"}, {"version"}} {
		code, stdout, _ := command(t, "", append(args, "--help")...)
		if code != 0 || !strings.Contains(stdout, "Example:") || !strings.Contains(stdout, "runlens "+args[0]) {
			t.Errorf("%v --help: exit code %d\n%s", args, code, stdout)
		}
	}
}

// A setting that cannot work at start is one clear line and exit code 1, without the engine's words.
func TestStartFailures(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"no such library": {[]string{"serve", "--engine-lib", "/nowhere", "--data-dir", t.TempDir(), "--listen", "127.0.0.1:0", "--admin-listen", "off"}, "make engine"},
		"bad address":     {[]string{"serve", "--listen", "nowhere:nothing", "--admin-listen", "off"}, "--listen"},
		"bad URL":         {[]string{"migrate", "status", "--clickhouse-url", "ftp://x"}, "clickhouse"},
		"no certificate":  {[]string{"serve", "--listen", "127.0.0.1:0", "--tls-cert", "/nowhere", "--tls-key", "/nowhere"}, "--tls-cert"},
	} {
		t.Run(name, func(t *testing.T) {
			code, _, stderr := command(t, "", c.args...)
			if code != exitFailed || !strings.Contains(stderr, c.says) {
				t.Errorf("exit code %d, want 1 and %q:\n%s", code, c.says, stderr)
			}
		})
	}
}

func TestMigrateAndVersion(t *testing.T) {
	flags := store(t)
	migrations, err := filepath.Glob("../../schema/migrations/*.up.sql")
	if err != nil {
		t.Fatal(err)
	}
	// Numbers may have gaps.
	number := func(fromLast int) (n int) {
		if _, err := fmt.Sscanf(filepath.Base(migrations[len(migrations)-1-fromLast]), "%d_", &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	newest := number(0)
	current := fmt.Sprintf("version %d of %d (current)\n", newest, newest)
	code, out, stderr := command(t, "", append([]string{"migrate", "status"}, flags...)...)
	if code != 0 || out != current {
		t.Errorf("status: %d %q %s", code, out, stderr)
	}
	code, out, _ = command(t, "", append([]string{"migrate", "down", "--steps", "2"}, flags...)...)
	if code != 0 || !strings.HasPrefix(out, fmt.Sprintf("version %d of %d (pending", number(2), newest)) {
		t.Errorf("down: %d %q", code, out)
	}
	code, out, _ = command(t, "", append([]string{"migrate", "up"}, flags...)...)
	if code != 0 || out != current {
		t.Errorf("up: %d %q", code, out)
	}
	code, out, _ = command(t, "", "version", "--engine-lib", clickhousetest.Library())
	if code != 0 || !strings.HasPrefix(out, "runlens ") || !strings.Contains(out, "\ncommit ") || !strings.Contains(out, "\nengine ClickHouse 2") {
		t.Errorf("version: %d %q", code, out)
	}
}

// Contract 2: the fields of keys create; a key without scopes; list and revoke.
func TestKeys(t *testing.T) {
	flags := store(t)
	code, out, _ := command(t, "", append([]string{"keys", "create", "--org", "acme", "--name", "n", "--scopes", "", "--output", "json"}, flags...)...)
	var created map[string]any
	if err := json.Unmarshal([]byte(out), &created); err != nil || code != 0 {
		t.Fatal(code, err, out)
	}
	if len(created) != 6 || created["organization_id"] != "acme" || created["name"] != "n" || len(created["scopes"].([]any)) != 0 ||
		!strings.HasPrefix(created["key"].(string), "rl_"+created["key_id"].(string)+"_") {
		t.Errorf("created %v", created)
	}
	if _, err := time.Parse(time.RFC3339, created["created_at"].(string)); err != nil {
		t.Error(err)
	}
	code, out, _ = command(t, "", append([]string{"keys", "list", "--org", "acme"}, flags...)...)
	if code != 0 || !strings.Contains(out, created["key_id"].(string)) || strings.Contains(out, created["key"].(string)) {
		t.Errorf("list: %d\n%s", code, out)
	}
	code, _, stderr := command(t, "", append([]string{"keys", "revoke", "unknown"}, flags...)...)
	if code != exitFailed || !strings.Contains(stderr, "keys list") {
		t.Errorf("revoke an unknown key: %d %s", code, stderr)
	}
	if code, _, stderr = command(t, "", append([]string{"keys", "revoke", created["key_id"].(string)}, flags...)...); code != 0 {
		t.Errorf("revoke: %d %s", code, stderr)
	}
	code, out, _ = command(t, "", append([]string{"keys", "list", "--org", "acme", "--output", "json"}, flags...)...)
	if code != 0 || !strings.Contains(out, `"revoked_at":"2`) {
		t.Errorf("list: %d\n%s", code, out)
	}
}

func TestIngestCommand(t *testing.T) {
	flags := store(t)
	const good = `{"record":"agent","organization_id":"acme","agent_id":"0b7e4d2c-9f3a-4c61-8a55-2f1d6c9e7b10","name":"Support","updated_at":"2026-01-31T09:30:00Z"}` + "\n"
	folder := t.TempDir()
	file, rejects := filepath.Join(folder, "a.ndjson"), filepath.Join(folder, "rejects")
	if err := os.WriteFile(file, []byte(good+"{}\n"+good), 0o600); err != nil {
		t.Fatal(err)
	}
	ingest := func(stdin string, args ...string) (int, string, string) {
		return command(t, stdin, append(append([]string{"ingest"}, args...), flags...)...)
	}
	code, out, stderr := ingest("", "--rejects", rejects, file)
	if code != exitRejected || !strings.HasPrefix(out, "read 3, stored: agents 2, runs 0, attributions 0, rejected 1") {
		t.Errorf("%d %s %s", code, out, stderr)
	}
	content, err := os.ReadFile(rejects)
	if want := `{"source":"` + file + `","line":2,"field":"record","error":"is required: agent, run or attribution","record":{}}` + "\n"; err != nil || string(content) != want {
		t.Errorf("rejects %q, %v, want %q", content, err, want)
	}
	if code, _, stderr = ingest("", "--on-error", "stop", file); code != exitFailed || !strings.Contains(stderr, "line 2") {
		t.Errorf("stop: %d %s", code, stderr)
	}
	if code, out, _ = ingest(good, "-"); code != 0 || !strings.HasPrefix(out, "read 1, stored: agents 1") {
		t.Errorf("standard input: %d %s", code, out)
	}
	if code, _, stderr = ingest("{}", "-"); code != exitRejected || !strings.Contains(stderr, "rejected: - line 1: record is required") {
		t.Errorf("without --rejects: %d %s", code, stderr)
	}
	if code, _, stderr = ingest(good, "--rejects", filepath.Join(folder, "nothing", "x"), "-"); code != exitUsage {
		t.Errorf("rejects nowhere: %d %s", code, stderr)
	}
	// A dry run needs no store.
	if code, out, stderr = command(t, good, "ingest", "--dry-run", "--engine-lib", "/nowhere", "-"); code != 0 || !strings.Contains(out, "valid: agents 1") {
		t.Errorf("dry run: %d %s %s", code, out, stderr)
	}
}
