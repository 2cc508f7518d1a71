package olap_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/rollup"
)

// An organization is idle, so the boundaries of first pages are set without waiting. Then rows arrive at any time, also
// while the background reading is made: the pages have all that was first stored until their asOf, what was
// acknowledged before, and nothing else. So have those of a query that was asked before and of one that was not.
func TestIdleOrganizationsGetRows(t *testing.T) {
	t.Parallel()
	rounds := 20
	if testing.Short() {
		rounds = 6
	}
	t.Run("base rows", func(t *testing.T) { idleOrganizationsGetRows(t, false, rounds) })
	t.Run("rollup", func(t *testing.T) { idleOrganizationsGetRows(t, true, rounds/2) })
}

func idleOrganizationsGetRows(t *testing.T, large bool, rounds int) {
	t.Parallel()
	const (
		idle     = 30 * time.Millisecond
		patience = 2 * time.Second // of a first page, for inserts in flight
	)
	ctx := context.Background()
	store := olaptest.OpenStore(t)
	engine := olap.NewEngine(store.Conn(), []byte("secret"))
	refresher := rollup.New(store.Conn(), quiet, 0)
	if large {
		engine.Use(asLarge)
		engine.Margin(0)
	}
	engine.Margin(idle)
	const usual = 50 // one page is expected to have so many agents
	var agents olaptest.Records
	for n := range usual + 5 {
		run := runOn(1_000_000+n, 1, "RUNNING")
		run.AgentID = olaptest.ShortID(100 + n)
		agents.Runs = append(agents.Runs, run)
	}
	load := func(n int) {
		var records olaptest.Records
		for day := range 3 {
			records.Runs = append(records.Runs, runOn(100*n+day, 1+day, "RUNNING"))
		}
		for month := range rand.IntN(2) * 20 { // outside the range; so many parts take a while
			other := runOn(100*n+10+month, 1, "RUNNING")
			other.CreatedAt = other.CreatedAt.AddDate(0, 1+month, 0)
			records.Runs = append(records.Runs, other)
		}
		olaptest.Load(t, store.Conn(), records)
	}
	load(0)
	olaptest.Load(t, store.Conn(), agents)
	q := byDay(1)
	byAgent := q
	byAgent.Dimensions, byAgent.Limit = []string{"agent_id"}, usual
	for n := 1; n <= rounds; n++ {
		time.Sleep(idle)
		// nothing was stored for a while, and is until the next
		ask(t, engine, "acme", q)
		time.Sleep(time.Duration(rand.IntN(2)) * 60 * time.Millisecond) // the cached reading is fresh or stale then
		inserted := make(chan struct{})
		go func() {
			defer close(inserted)
			load(n)
		}()
		if rand.IntN(3) == 0 {
			<-inserted
		} else {
			time.Sleep(time.Duration(rand.IntN(10_000)) * time.Microsecond)
		}
		if rand.IntN(2) == 0 {
			engine.FollowOnce(ctx)
		}
		if large && rand.IntN(3) == 0 {
			refreshed(t, refresher)
		}
		acknowledged := len(agents.Runs) + 3*n
		select {
		case <-inserted:
			acknowledged += 3
		default:
		}
		var queries sync.WaitGroup
		asked := []olaptest.Query{q, q, byAgent, byAgent}
		for i := range asked {
			asked[i].Limit += i % 2 // or they would be one execution
		}
		for i := 2; i < len(asked); i++ {
			asked[i].Metrics = []string{"run_count"} // and others in which n is written: they were not asked before
			for bit, metric := range []string{"completed_run_count", "failed_run_count", "cancelled_run_count",
				"active_run_count", "unique_initiator_count"} {
				if n>>bit&1 == 1 {
					asked[i].Metrics = append(asked[i].Metrics, metric)
				}
			}
		}
		firsts := make([]response, len(asked))
		took := make([]time.Duration, len(asked))
		for i := range firsts {
			queries.Go(func() {
				time.Sleep(time.Duration(i%2*rand.IntN(40_000)) * time.Microsecond)
				began := time.Now()
				firsts[i] = ask(t, engine, "acme", asked[i])
				took[i] = time.Since(began)
			})
		}
		queries.Wait()
		<-inserted
		for i, first := range firsts {
			var further [][]any
			if next := asked[i]; first.Cursor != nil {
				next.Cursor = *first.Cursor
				further = all(t, engine, "acme", next)
			}
			total := runsIn(first, further)
			var stored uint64
			if err := store.Conn().QueryRow(ctx, "SELECT count() FROM runs FINAL WHERE created_at < '2026-02-01' AND "+
				"first_stored_at <= parseDateTime64BestEffort($1, 3, 'UTC')", first.AsOf).Scan(&stored); err != nil {
				t.Fatal(err)
			}
			// On a slow machine an insert can outlast the engine's patience, and the boundary lies before it.
			complete := stored >= uint64(acknowledged) || took[i] >= patience
			if total != float64(stored) || !complete {
				t.Errorf("%v runs in the pages as of %s, %d were stored until then, %d were acknowledged before the first,"+
					" which took %s", total, first.AsOf, stored, acknowledged, took[i])
			}
		}
	}
}
