package httpapi_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	httpapi "github.com/runlens/runlens/http"
	"github.com/runlens/runlens/http/auth"
	"github.com/runlens/runlens/http/limit"
	"github.com/runlens/runlens/ingest/push"
	"github.com/runlens/runlens/ingest/write"
	"github.com/runlens/runlens/olap/olaptest"
)

// Eight clients push at once, and there are far fewer inserts than requests.
func TestPushesAreJoined(t *testing.T) {
	store := olaptest.OpenStore(t)
	counted := &countingConn{Conn: store.Conn()}
	s := serveOn(t, store, pushInto(counted))
	key := s.pusher("acme")
	const clients, each = 8, 6
	var pushing sync.WaitGroup
	for client := range clients {
		pushing.Go(func() {
			for n := range each {
				id := 1 + client*each + n
				s.push(key, []byte(runLine("acme", id)+attributionLine("acme", id)), "").want(t, 200, "", "")
			}
		})
	}
	pushing.Wait()
	if got := s.runs("acme"); got != fmt.Sprint(clients*each) {
		t.Errorf("%s runs", got)
	}
	// Two tables for each joint insert. Were they not joined, it would be 96.
	if counted.inserts > clients*each {
		t.Errorf("%d inserts for %d requests", counted.inserts, clients*each)
	}
}

// pushInto has records stored through a connection.
func pushInto(conn driver.Conn) func(*httpapi.Config) {
	return func(c *httpapi.Config) {
		c.Push.Pusher = push.NewLane(write.NewWriter(conn, quiet), push.NewMetrics(), quiet.Logger)
	}
}

// A countingConn counts inserts, of which those whose statement has the text fails fail.
type countingConn struct {
	driver.Conn
	fails   string
	inserts int
}

func (c *countingConn) PrepareBatch(
	ctx context.Context, statement string, options ...driver.PrepareBatchOption,
) (driver.Batch, error) {
	c.inserts++
	if c.fails != "" && strings.Contains(statement, c.fails) {
		return nil, errors.New("DB::Exception: no")
	}
	return c.Conn.PrepareBatch(ctx, statement, options...)
}

// An insert that fails between tables acknowledges nothing of any request that it has, and the same bodies again are
// stored, once.
func TestPushThatFailsBetweenTables(t *testing.T) {
	store := olaptest.OpenStore(t)
	conn := &countingConn{Conn: store.Conn(), fails: "INSERT INTO attributions"}
	s := serveOn(t, store, pushInto(conn))
	acme, globex := s.pusher("acme"), s.pusher("globex")
	both := func(status int, code string) {
		t.Helper()
		var pushing sync.WaitGroup
		for organization, key := range map[string]string{"acme": acme, "globex": globex} {
			pushing.Go(func() {
				s.push(key, []byte(runLine(organization, 1)+attributionLine(organization, 1)), "").want(t, status, code, "")
			})
		}
		pushing.Wait()
	}
	both(500, "internal_error")
	conn.fails = ""
	both(200, "")
	if acme, globex := s.runs("acme"), s.runs("globex"); acme != "1" || globex != "1" {
		t.Errorf("%s and %s runs", acme, globex)
	}
}

// What waits is bounded, by key and altogether: beyond that it is 429. All of it is free again afterwards.
func TestPushesAreBounded(t *testing.T) {
	memory := limit.NewShares(1<<20, 600<<10)
	store := olaptest.OpenStore(t)
	s := serveOn(t, store, func(c *httpapi.Config) { c.Push.Memory = memory })
	key := s.pusher("acme")
	body := bytes.Repeat([]byte("\n"), 700<<10)
	a := s.push(key, body, "")
	a.want(t, 429, "rate_limited", "")
	if a.header.Get("x-runlens-reason") != "records" || a.header.Get("Retry-After") != "1" {
		t.Errorf("%v", a.header)
	}
	// Packed it is small until it is unpacked.
	s.push(key, packedWith(t, "gzip", body), "gzip").want(t, 429, "rate_limited", "")
	s.push(key, body[:500<<10], "").want(t, 200, "", "")
	s.push(key, []byte(runLine("acme", 1)), "").want(t, 200, "", "")
	if taken := memory.Taken(); taken != 0 {
		t.Errorf("%d bytes are still taken", taken)
	}
	rates := serveOn(t, store, func(c *httpapi.Config) { c.Push.Rates = limit.NewKeyed(1, time.Minute) })
	key = rates.key("acme", auth.ScopeIngestWrite, auth.ScopeAnalyticsRead)
	rates.push(key, nil, "").want(t, 200, "", "")
	rates.push(key, nil, "").want(t, 429, "rate_limited", "")
	rates.post(key, valid).want(t, 200, "", "")
}
