package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/olap/clickhouse"
	"github.com/runlens/runlens/olap/clickhouse/clickhousetest"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/olaptest/logtest"
)

// run executes one command line, whose log goes to standard error, and returns the exit code.
func run(ctx context.Context, args []string, io streams) int {
	return runLogging(ctx, args, io, io.err)
}

// command runs one command line as main does.
func command(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err logtest.Buffer
	code = run(context.Background(), args, streams{strings.NewReader(stdin), &out, &err})
	return code, out.String(), err.String()
}

// must ends the test where something that it needs has failed.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// storeIn is store with an engine in a folder of the test.
func storeIn(t *testing.T, dir string) []string {
	t.Helper()
	flags := []string{"--data-dir", dir, "--engine-lib", clickhousetest.Library()}
	keeper, err := openFilled(t, storeFlags{DataDir: flags[1], EngineLib: flags[3]})
	must(t, err)
	t.Cleanup(func() { keeper.Close() })
	return flags
}

// openFilled is openMigrated for a new store.
func openFilled(t *testing.T, f storeFlags) (*clickhouse.Server, error) {
	t.Helper()
	store, err := openStore(t.Context(), f, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	olaptest.Fill(t, store)
	if err := f.admit(t.Context(), store); err != nil {
		store.Close()
		return nil, err
	}
	return store, nil
}

// serveWith is runlens serve with flags, at addresses that are free.
func serveWith(t *testing.T, flags ...string) serveCmd {
	t.Helper()
	var c cli
	parser, err := newParser(&c)
	must(t, err)
	if _, err := parser.Parse(append([]string{"serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"},
		flags...)); err != nil {
		t.Fatal(err)
	}
	return c.Serve
}

// started runs a whole server with the given flags until the test ends or stop is called.
func started(t *testing.T, flags ...string) (base, admin string, stop func()) {
	t.Helper()
	var log bytes.Buffer
	a, err := startApp(context.Background(), serveWith(t, flags...), slog.New(slog.NewJSONHandler(&log, nil)))
	must(t, err)
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
	t.Cleanup(func() {
		if stop(); t.Failed() {
			t.Log(log.String())
		}
	})
	_, rest, _ := strings.Cut(log.String(), `"msg":"serving the admin address","address":"`)
	address, _, _ := strings.Cut(rest, `"`)
	return "http://" + a.Address(), "http://" + address, stop
}

// adminToken is the token that the data directory of the flags of store keeps.
func adminToken(t *testing.T, flags []string) string {
	t.Helper()
	token, err := readAdminToken(filepath.Join(flags[1], adminTokenFile))
	must(t, err)
	return token
}

func get(t *testing.T, url, key string) (int, string) {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, url, nil)
	must(t, err)
	request.Header.Set("Authorization", "Bearer "+key)
	return send(t, request)
}

func post(t *testing.T, base, key, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequest(http.MethodPost, base+"/api/v1/analytics/query", strings.NewReader(body))
	must(t, err)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+key)
	return send(t, request)
}

func send(t *testing.T, request *http.Request) (int, string) {
	t.Helper()
	request.Close = true // an idle connection would delay the drain
	response, err := http.DefaultClient.Do(request)
	must(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	must(t, err)
	return response.StatusCode, string(body)
}

func createKey(t *testing.T, flags []string, more ...string) (id, key string) {
	t.Helper()
	code, out, errs := command(
		t,
		"",
		append(append([]string{"keys", "create", "--org", "acme", "--output", "json"}, flags...), more...)...)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	var created map[string]any
	if err := json.Unmarshal([]byte(out), &created); err != nil {
		t.Fatal(err, out)
	}
	return created["key_id"].(string), created["key"].(string)
}
