package purge_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/runlens/runlens/ingest/purge"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/rollup"
)

// What a person did while the clocks of the store and of its sources were ahead goes, although it seems to be later
// than a purge that is made when they were set back, and also where the clock passes its stamp before the purge has
// ended. What is stored while the purge runs, and is later, stays.
func TestAPersonIsGoneWhenTheClockWasSetBack(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"by an hour": time.Hour, "by two seconds": 2 * time.Second} {
		t.Run(name, func(t *testing.T) {
			conn := olaptest.OpenStore(t).Conn()
			stamps, held := olaptest.StampsOf(t, conn), olaptest.Hold(conn)
			ada, later := "ada@example.com", time.Now().Add(30*time.Minute)
			stored := func(n int) {
				olaptest.Load(t, conn, olaptest.Records{
					Runs: []olaptest.Run{{Organization: "acme", ID: olaptest.ID(n), CreatedAt: later, AgentID: olaptest.ID(1),
						Kind: "agent", Status: "RUNNING", Identifier: &ada, UpdatedAt: later}},
					Attributions: []olaptest.Attribution{{Organization: "acme", ID: olaptest.ID(n), RunID: olaptest.ID(n),
						AgentID: olaptest.ID(1), Identifier: ada, Activity: "initiated", InitiationType: "human", Source: "web",
						OccurredAt: later}},
				})
			}
			held.After("'name',", func() { // everything is found by now
				stored(2)
				if ahead < time.Minute {
					time.Sleep(ahead)
				}
			})
			stamps.Shift(t, ahead)
			stored(1)
			stamps.Shift(t, 0)
			if err := purge.Person("acme", ada).Run(t.Context(), held, func(purge.Step) {}); err != nil {
				t.Fatal(err)
			}
			for n, want := range []uint64{1: 0, 2: 1} {
				id := "toUUID('" + olaptest.ID(n).String() + "')"
				for _, query := range []string{"attributions WHERE attribution_id = " + id,
					"runs WHERE isNotNull(tupleElement(record, 'initiator_identifier')) AND run_id = " + id} {
					if got := number(t, conn, "SELECT count() FROM "+query); got != want {
						t.Errorf("%d, want %d: %s", got, want, query)
					}
				}
			}
		})
	}
}

// A person is purged when the store's clock was set back, and is behind the watermark. The runs that are to be
// refreshed again are, also by a server that starts when the clock has passed the watermark.
func TestRunsAreRefreshedAgainWhenTheClockWasSetBack(t *testing.T) {
	conn := olaptest.OpenStore(t).Conn()
	at, ada := time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC), "ada@example.com"
	olaptest.Load(t, conn, olaptest.Records{
		Runs: []olaptest.Run{{Organization: "acme", ID: olaptest.ID(1), CreatedAt: at, AgentID: olaptest.ID(1),
			Kind: "agent", Status: "RUNNING", Identifier: &ada, UpdatedAt: at}},
	})
	quiet, held := slog.New(slog.DiscardHandler), olaptest.Hold(conn)
	for _, ahead := range []time.Duration{time.Minute, 2 * time.Minute} {
		held.Shift(ahead)
		if err := rollup.New(held, quiet, 0).Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if ahead == time.Minute {
			if err := purge.Person("acme", ada).Run(t.Context(), conn, func(purge.Step) {}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if found, err := rollup.Check(t.Context(), conn); err != nil || len(found) > 0 {
		t.Errorf("the rollup differs: %+v, %v", found, err)
	}
	if n := number(t, conn, "SELECT toUInt64(sum(runs)) FROM rollup_runs"); n != 1 {
		t.Errorf("%d runs, want 1", n)
	}
}
