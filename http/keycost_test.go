package httpapi_test

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	httpapi "github.com/runlens/runlens/http"
	"github.com/runlens/runlens/http/auth"
	"github.com/runlens/runlens/http/limit"
	"github.com/runlens/runlens/olap/keys"
	"github.com/runlens/runlens/olap/olaptest"
)

// After a start, keys that were used in the last days cost no statement of their own, neither at the first request nor
// later, however many there are: one statement every two seconds stands for all. What another process does to a key is
// seen all the same.
func TestKeysCostOneStatementForAll(t *testing.T) {
	ctx := context.Background()
	store := olaptest.OpenStore(t)
	conn := &tap{Conn: store.Conn()}
	var elapsed atomic.Int64
	began := time.Now()
	now := func() time.Time { return began.Add(time.Duration(elapsed.Load())) }
	budget, logger := limit.NewWindow(100, time.Minute), slog.New(slog.DiscardHandler)
	verifier := auth.NewVerifier(keys.NewStore(conn), budget, now, logger)
	s := serveOn(t, store, func(c *httpapi.Config) { c.Verifier = verifier })
	established := []string{s.reader(), s.reader(), s.reader()}
	id := func(key string) string { return strings.Split(key, "_")[1] }
	uses := map[string]time.Time{}
	for _, key := range established {
		uses[id(key)] = began
	}
	if err := s.keys.RecordUses(ctx, uses); err != nil {
		t.Fatal(err)
	}
	refresh := func() {
		t.Helper()
		if err := verifier.Refresh(ctx); err != nil {
			t.Fatal(err)
		}
	}
	refresh()
	for range 10 {
		conn.statements = nil
		for _, key := range established {
			s.get(catalogPath, key).want(t, 200, "", "")
		}
		if len(conn.statements) != 0 {
			t.Fatalf("%v after the start: %q", now().Sub(began), conn.statements)
		}
		elapsed.Add(int64(2 * time.Second))
		refresh()
		if len(conn.statements) != 1 {
			t.Fatalf("a refresh %v after the start: %q", now().Sub(began), conn.statements)
		}
	}
	if _, err := s.keys.Revoke(ctx, id(established[0])); err != nil {
		t.Fatal(err)
	}
	elapsed.Add(int64(2 * time.Second))
	conn.statements = nil
	refresh()
	// The list of parts, the ids in the new one, and what this server keeps of them: one key.
	if len(conn.statements) != 3 {
		t.Errorf("after one key was revoked: %q", conn.statements)
	}
	elapsed.Add(int64(2 * time.Second))
	refresh()
	conn.statements = nil
	for _, key := range established[1:] {
		s.get(catalogPath, key).want(t, 200, "", "")
	}
	if len(conn.statements) != 0 {
		t.Errorf("after another key was revoked: %q", conn.statements)
	}
	s.get(catalogPath, established[0]).want(t, 401, "unauthorized", "")
}
