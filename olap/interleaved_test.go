package olap_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/rollup"
	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
)

// refreshedUntil refreshes what was stored until an instant of the store's clock.
func refreshedUntil(t olaptest.Failer, conn driver.Conn, until time.Time) {
	t.Helper()
	refreshed(t, rollup.New(conn, quiet, storeClock(t, conn).Sub(until)))
}

func storeClock(t olaptest.Failer, conn driver.Conn) time.Time {
	t.Helper()
	now, err := snapshot.Now(context.Background(), conn)
	if err != nil {
		t.Fatal(err)
	}
	return now
}

// later returns the store's clock when it has passed an instant by some milliseconds.
func later(t olaptest.Failer, conn driver.Conn, than time.Time) time.Time {
	t.Helper()
	for {
		if now := storeClock(t, conn); now.Sub(than) > 5*time.Millisecond {
			return now
		}
	}
}

// A history is what an organization has when a question of it is interrupted: refreshed runs, runs of a cached delta,
// and one that was stored since.
type history struct {
	organization string
	conn         driver.Conn
	runs         int
	partly       time.Time // some of the delta's runs were stored before
	answered     func()    // called when the question is; nil for nothing
}

func (h *history) store(t olaptest.Failer, n int) {
	t.Helper()
	var records olaptest.Records
	for range n {
		run := runOn(h.runs, 1+h.runs%20, "RUNNING")
		run.Organization = h.organization
		records.Runs = append(records.Runs, run)
		h.runs++
	}
	olaptest.Load(t, h.conn, records)
}

// inline begins the names of actions beside a delta that is computed in its statement.
const inline = "an inline delta"

func rebuilt(t *testing.T, h *history) int {
	if err := rollup.Rebuild(t.Context(), h.conn); err != nil {
		t.Fatal(err)
	}
	return 0
}

// Whatever another process does between two statements of a question, the answer has every run that was acknowledged
// before the question once, and the next answer has all of them. With -short half of them do it, before one in three
// statements.
func TestAnswersBetweenEveryTwoStatements(t *testing.T) {
	t.Parallel()
	tried := olaptest.NewSample(2)
	for name, action := range map[string]func(t *testing.T, h *history) (stored int){
		"a refresh of everything": func(t *testing.T, h *history) int {
			refreshed(t, rollup.New(h.conn, quiet, 0))
			return 0
		},
		"a refresh of a part": func(t *testing.T, h *history) int {
			refreshedUntil(t, h.conn, h.partly)
			return 0
		},
		"a refresh of a part, and a row": func(t *testing.T, h *history) int {
			refreshedUntil(t, h.conn, h.partly)
			h.store(t, 1)
			return 1
		},
		"a row, and a refresh of everything": func(t *testing.T, h *history) int {
			h.store(t, 1)
			refreshed(t, rollup.New(h.conn, quiet, 0))
			return 1
		},
		"a rebuild":            rebuilt,
		inline + ", a rebuild": rebuilt,
		inline + ", a part of a rebuild": func(t *testing.T, h *history) int {
			held, reached, goOn, ended := olaptest.Hold(h.conn), make(chan struct{}), make(chan struct{}), make(chan error, 1)
			held.After("ALTER TABLE rollup_runs DELETE", func() { close(reached); <-goOn })
			go func() { ended <- rollup.Rebuild(t.Context(), held) }()
			<-reached
			h.answered = func() {
				close(goOn)
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}
			return 0
		},
	} {
		if !tried.Try() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := olaptest.OpenStore(t).Conn()
			refreshed(t, rollup.New(store, quiet, 0))
			sample := olaptest.NewSample(3)
			// The first try, which says how many statements are sent, is among the first three.
			for number, sent := 1, 3; number <= sent; number++ {
				if !sample.Try() {
					continue
				}
				h := &history{organization: fmt.Sprintf("%s, %d", name, number), conn: store}
				conn := olaptest.Hold(store)
				engine := olap.NewEngine(conn, []byte("secret"))
				engine.CacheAnswers(1 << 20)
				options := asLarge
				if strings.HasPrefix(name, inline) {
					options = inlineDelta
				}
				engine.Use(options)
				engine.Margin(0)
				h.store(t, 10)
				refreshed(t, rollup.New(store, quiet, 0))
				h.store(t, 3)
				h.partly = later(t, store, storeClock(t, store))
				later(t, store, h.partly)
				h.store(t, 2)
				// An insert may seem to be in flight.
				for options == asLarge && engine.CachedDelta(schema.OrganizationID(h.organization), "runs") != 5 {
					ask(t, engine, h.organization, totals)
				}
				h.store(t, 1)
				conn.Restart()
				before, stored := float64(h.runs), 0
				conn.Before(number, func() { stored = action(t, h) })
				got := ask(t, engine, h.organization, totals).Rows[0][0].(float64)
				sent = max(sent, conn.Sent())
				if h.answered != nil {
					h.answered()
				}
				if got < before || got > before+float64(stored) {
					t.Errorf("before statement %d: %v runs, want %v to %v", number, got, before, before+float64(stored))
				}
				for range 3 {
					if got := ask(t, engine, h.organization, totals).Rows[0][0].(float64); got != float64(h.runs) {
						t.Errorf("afterwards, %d: %v runs, want %v", number, got, h.runs)
					}
				}
			}
		})
	}
}

// A delta that is cached while an insert is in flight, whose rows are stamped before it and become visible after it,
// has those rows later.
func TestDeltasGetRowsOfInsertsInFlight(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	conn := olaptest.OpenStore(t).Conn()
	engine := newEngine(conn)
	engine.Use(asLarge)
	h := &history{organization: "acme", conn: conn}
	h.store(t, 1)
	refreshed(t, rollup.New(conn, quiet, 0))
	asked := func(want float64) {
		t.Helper()
		if got := ask(t, engine, "acme", totals).Rows[0][0]; got != want {
			t.Errorf("%v runs, want %v", got, want)
		}
	}
	ended := olaptest.SlowInsert(ctx, t, conn, "runs", "2026-01-02", 3)
	for began := storeClock(t, conn); ; {
		inserts, err := snapshot.ReadInserts(ctx, conn)
		if err != nil {
			t.Fatal(err)
		}
		if inserts.Now.Sub(inserts.Oldest) > 50*time.Millisecond && inserts.Oldest.After(began.Add(-time.Second)) {
			break
		}
	}
	h.store(t, 1)
	asked(2)
	if n := engine.CachedDelta("acme", "runs"); n != 1 {
		t.Fatalf("the cached delta has %d rows, want 1", n)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	asked(5)
	asked(5)
}
