package main

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"
)

// pushTo sends records with a key, and returns the answer.
func pushTo(t *testing.T, base, key, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequest(http.MethodPost, base+"/api/ingest/v1/records", strings.NewReader(body))
	must(t, err)
	request.Header.Set("Authorization", "Bearer "+key)
	return send(t, request)
}

// Records are taken on the API's address, or on one of their own, and only with a key that may push.
func TestServeTakesRecords(t *testing.T) {
	flags := store(t)
	_, reader := createKey(t, flags)
	_, pusher := createKey(t, flags, "--scopes", "ingest:write")
	var log bytes.Buffer
	a, err := startApp(context.Background(), serveWith(t, append(flags, "--ingest-listen", "127.0.0.1:0")...),
		slog.New(slog.NewJSONHandler(&log, nil)))
	must(t, err)
	_, rest, _ := strings.Cut(log.String(), `"msg":"taking records","address":"`)
	address, _, _ := strings.Cut(rest, `"`)
	ingest, base := "http://"+address, "http://"+a.Address()
	shared, admin, _ := started(t, flags...)
	run := agentsNDJSON + strings.ReplaceAll(`{"record":"run","organization_id":"acme","run_id":"ID","agent_id":"ID",`+
		`"status":"FAILED","created_at":"2026-01-05T10:00:00Z","updated_at":"2026-01-05T10:00:00Z"}`, "ID",
		"00000000-0000-4000-8000-00000000000a")
	for _, c := range []struct {
		base, key string
		want      int
		answer    string
	}{
		{ingest, reader, 403, "insufficient_scope"},
		{ingest, pusher, 200, `{"lines":2,"stored":2,"rejected":0,"rejects":[]}`},
		{base, pusher, 404, "not_found"}, {shared, pusher, 200, `"stored":2`}, {shared, reader, 403, "insufficient_scope"},
	} {
		if code, body := pushTo(t, c.base, c.key, run); code != c.want || !strings.Contains(body, c.answer) {
			t.Errorf("%s: %d %s, want %d %s", c.base, code, body, c.want, c.answer)
		}
	}
	if code, body := post(t, ingest, reader, totals); code != 404 {
		t.Errorf("a question at the address for records: %d %s", code, body)
	}
	if code, body := post(t, base, reader, totals); code != 200 || !strings.Contains(body, `"rows":[[1]]`) {
		t.Errorf("%d %s", code, body)
	}
	if code, _ := post(t, shared, pusher, totals); code != 403 {
		t.Errorf("a question with a key that may push: %d", code)
	}
	_, metrics := get(t, admin+"/metrics", "")
	for _, want := range []string{`runlens_push_records_total{result="stored"} 2`, "runlens_push_waiting_bytes 0",
		`runlens_push_inserts_total{result="stored"} 1`} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	if err := a.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// A run that was pushed with another created_at counts once when that is answered, and every server reports it, also
// one that has not resolved it.
func TestPushedRunThatMoved(t *testing.T) {
	flags := store(t)
	_, key := createKey(t, flags, "--scopes", "analytics:read,ingest:write")
	base, admin, _ := started(t, flags...)
	other, otherAdmin, _ := started(t, flags...)
	for _, created := range []string{"2026-01-05T10:00:00Z", "2026-01-05T10:00:01Z"} {
		run := strings.ReplaceAll(`{"record":"run","organization_id":"acme","run_id":"ID","agent_id":"ID","status":"FAILED",`+
			`"created_at":"`+created+`","updated_at":"`+created+`"}`, "ID", "00000000-0000-4000-8000-00000000000a")
		if code, body := pushTo(t, base, key, run); code != 200 {
			t.Fatalf("%d %s", code, body)
		}
	}
	for _, address := range []string{base, other} {
		if code, body := post(t, address, key, totals); code != 200 || !strings.Contains(body, `"rows":[[1]]`) {
			t.Errorf("%d %s", code, body)
		}
	}
	for _, address := range []string{admin, otherAdmin} {
		if _, metrics := get(t, address+"/metrics", ""); !strings.Contains(metrics,
			`runlens_conflicting_records{record="run"} 1`) {
			t.Error("a server does not report the run")
		}
	}
}
