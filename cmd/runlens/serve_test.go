package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/runlens/runlens/cmd/internal/harness"
	"github.com/runlens/runlens/olap/olaptest/logtest"
)

const totals = `{"model":"agent_runs","metrics":["run_count"],"range":{"start":"2026-01-01","end":"2026-01-31",` +
	`"timezone":"UTC"}}`

// From records to answers: ingest, a key, a query, all through the commands.
func TestRecordsToAnswers(t *testing.T) {
	flags := store(t)
	base, admin, _ := started(t, flags...)
	id, key := createKey(t, flags)
	_, bare := createKey(t, flags, "--scopes", "")

	if code, body := post(t, base, key, totals); code != 200 || !strings.Contains(body, `"rows":[[0]]`) {
		t.Errorf("%d %s", code, body)
	}
	var lines strings.Builder
	for n := range 3 {
		fmt.Fprintf(
			&lines,
			`{"record":"run","organization_id":"acme","run_id":"0b7e4d2c-9f3a-4c61-8a55-2f1d6c9e7b1%d",`+
				`"agent_id":"0b7e4d2c-9f3a-4c61-8a55-2f1d6c9e7b10","status":"COMPLETED","created_at":"2026-01-0%dT09:30:00Z",`+
				`"updated_at":"2026-01-31T09:31:00Z"}`+"\n",
			n, n+1,
		)
	}
	for range 2 { // a re-run changes nothing
		if code, out, stderr := command(t, lines.String(), append([]string{"ingest", "-"}, flags...)...); code != 0 {
			t.Fatal(code, out, stderr)
		}
		if code, body := post(t, base, key, totals); code != 200 || !strings.Contains(body, `"rows":[[3]]`) {
			t.Errorf("%d %s", code, body)
		}
	}
	if code, body := post(t, base, bare, totals); code != 403 {
		t.Errorf("a key without scopes: %d %s", code, body)
	}

	// The admin address, and nothing of it on the API's.
	for path, want := range map[string]string{"/healthz": "ok", "/readyz": "ready",
		"/metrics":      `runlens_http_requests_total{route="/api/v1/analytics/query",status="200"} 3`,
		"/debug/pprof/": "goroutine"} {
		if code, body := get(t, admin+path, adminToken(t, flags)); code != 200 || !strings.Contains(body, want) {
			t.Errorf("%s: %d, without %q", path, code, want)
		}
		if code, _ := get(t, base+path, ""); code != 404 {
			t.Errorf("%s is on the API's address: %d", path, code)
		}
	}
	// The documentation is on the API's address alone.
	for path, want := range map[string]string{"/openapi.yaml": "openapi: 3", "/docs": "swagger-ui",
		"/docs/": "swagger-ui"} {
		if code, body := get(t, base+path, ""); code != 200 || !strings.Contains(body, want) {
			t.Errorf("%s: %d, without %q", path, code, want)
		}
		if code, _ := get(t, admin+path, adminToken(t, flags)); code != 404 {
			t.Errorf("%s is on the admin address: %d", path, code)
		}
	}
	for _, metric := range []string{
		`runlens_ingest_lag_seconds{table="runs"}`,
		`runlens_query_strategies_total{delta="",reads="base",reason="rows_below_threshold"} `,
	} {
		if _, body := get(t, admin+"/metrics", ""); !strings.Contains(body, metric) {
			t.Errorf("the metrics lack %s", metric)
		}
	}

	for _, counter := range []string{"\nrunlens_query_statements_total ", "\nrunlens_query_rows_read_total "} {
		_, body := get(t, admin+"/metrics", "")
		if !strings.Contains(body, counter) || strings.Contains(body, counter+"0\n") {
			t.Errorf("the metrics lack %q, or it is 0", counter)
		}
	}

	// Contract 2: a revocation holds within 5 s.
	if code, _, stderr := command(t, "", append([]string{"keys", "revoke", id}, flags...)...); code != 0 {
		t.Fatal(stderr)
	}
	eventually(t, base, key, 401, revoked)
}

// firstDay requests the first of two pages; the brace that ends it is missing.
var firstDay = strings.TrimSuffix(strings.Replace(totals, `"range"`, `"dimensions":["day"],"limit":1,"range"`, 1), "}")

// ingestTwoDays stores a run on each of two days.
func ingestTwoDays(t *testing.T, flags []string) {
	t.Helper()
	var lines strings.Builder
	for n := range 2 {
		fmt.Fprintf(
			&lines,
			`{"record":"run","organization_id":"acme","run_id":"0b7e4d2c-9f3a-4c61-8a55-2f1d6c9e7b1%d",`+
				`"agent_id":"0b7e4d2c-9f3a-4c61-8a55-2f1d6c9e7b10","status":"COMPLETED","created_at":"2026-01-0%dT09:30:00Z",`+
				`"updated_at":"2026-01-31T09:31:00Z"}`+"\n",
			n, n+1,
		)
	}
	if code, _, stderr := command(t, lines.String(), append([]string{"ingest", "-"}, flags...)...); code != 0 {
		t.Fatal(stderr)
	}
}

// Contract 2: a cursor survives restarts, because the store keeps the secret.
func TestCursorsSurviveARestart(t *testing.T) {
	flags := store(t)
	base, _, stop := started(t, flags...)
	_, key := createKey(t, flags)
	ingestTwoDays(t, flags)
	_, body := post(t, base, key, firstDay+"}")
	var page struct{ Cursor string }
	if err := json.Unmarshal([]byte(body), &page); err != nil || page.Cursor == "" {
		t.Fatal(err, body)
	}
	stop()
	base, _, _ = started(t, flags...)
	if code, body := post(t, base, key, firstDay+`,"cursor":"`+page.Cursor+`"}`); code != 200 ||
		!strings.Contains(body, `[["2026-01-02",1]]`) {
		t.Errorf("%d %s", code, body)
	}
	t.Setenv("RUNLENS_CURSOR_SECRET", "another secret of another deployment")
	other, _, _ := started(t, flags...)
	if code, body := post(t, other, key, firstDay+`,"cursor":"`+page.Cursor+`"}`); code != 400 ||
		!strings.Contains(body, "invalid_cursor") {
		t.Errorf("another secret: %d %s", code, body)
	}
}

// The command itself: the ready file, and a clean end on SIGTERM.
func TestServeUntilASignal(t *testing.T) {
	flags := store(t)
	ready := filepath.Join(t.TempDir(), "ready")
	if err := os.WriteFile(ready, []byte("127.0.0.1:1"), 0o600); err != nil { // of an earlier server
		t.Fatal(err)
	}
	var out, stderr logtest.Buffer
	ended := make(chan int, 1)
	go func() {
		ended <- run(context.Background(), append([]string{"serve", "--listen", "127.0.0.1:0", "--admin-listen", "off",
			"--ready-file", ready}, flags...),
			streams{strings.NewReader(""), &out, &stderr})
	}()
	address := ""
	if !harness.Poll(t.Context(), 30*time.Second, 10*time.Millisecond, func() bool {
		content, err := os.ReadFile(ready)
		address = string(content)
		return err == nil && address != "" && address != "127.0.0.1:1"
	}) {
		t.Fatal("not ready")
	}
	if code, body := get(t, "http://"+address+"/api/v1/analytics/catalog", ""); code != 401 {
		t.Errorf("%d %s", code, body)
	}
	must(t, syscall.Kill(os.Getpid(), syscall.SIGTERM))
	if code := <-ended; code != 0 {
		t.Errorf("exit code %d:\n%s", code, stderr.String())
	}
	if !strings.Contains(stderr.String(), `"msg":"serving the API","address":"`+address+`"`) {
		t.Errorf("the address is not in the log:\n%s", stderr.String())
	}
}

func TestTLS(t *testing.T) {
	certificate, key := selfSigned(t)
	base, _, _ := started(t, append(store(t), "--tls-cert", certificate, "--tls-key", key)...)
	client := http.Client{
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true},
	}
	response, err := client.Get(strings.Replace(base, "http://", "https://", 1) + "/api/v1/analytics/catalog")
	must(t, err)
	response.Body.Close()
	if response.StatusCode != 401 || response.TLS == nil || response.TLS.Version < tls.VersionTLS12 {
		t.Errorf("%d, %+v", response.StatusCode, response.TLS)
	}
}

// selfSigned writes a certificate for 127.0.0.1 and its key.
func selfSigned(t *testing.T) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotAfter:     time.Now().Add(time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, private.Public(), private)
	must(t, err)
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	must(t, err)
	write := func(name, kind string, content []byte) string {
		path := filepath.Join(t.TempDir(), name)
		must(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o600))
		return path
	}
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", encoded)
}
