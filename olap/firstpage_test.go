package olap_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/olaptest"
)

// An organization is idle, so the boundaries of first pages are derived from a cached reading. Then rows arrive at any
// time: the pages have all that was first stored until their asOf, what was acknowledged before, and nothing else.
func TestIdleOrganizationsGetRows(t *testing.T) {
	const idle = 30 * time.Millisecond
	ctx := context.Background()
	store := olaptest.OpenStore(t)
	engine := olap.NewEngine(store.Conn(), []byte("secret"))
	engine.IdleFrom(idle)
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
	q := olaptest.Query{Model: "agent_runs", Metrics: []string{"run_count"}, Dimensions: []string{"day"}, Range: january,
		Limit: 1}
	for n := 1; n <= 30; n++ {
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
		acknowledged := 3 * n
		select {
		case <-inserted:
			acknowledged += 3
		default:
		}
		var queries sync.WaitGroup
		firsts := make([]response, 2)
		for i := range firsts {
			limited := q
			limited.Limit += i // or they would be one execution
			queries.Go(func() {
				time.Sleep(time.Duration(i*rand.IntN(40_000)) * time.Microsecond)
				firsts[i] = ask(t, engine, "acme", limited)
			})
		}
		queries.Wait()
		<-inserted
		for i, first := range firsts {
			next := q
			next.Limit += i
			next.Cursor = *first.Cursor
			total := 0.0
			for _, row := range append(first.Rows, all(t, engine, "acme", next)...) {
				total += row[1].(float64)
			}
			var stored uint64
			if err := store.Conn().QueryRow(ctx, "SELECT count() FROM runs FINAL WHERE created_at < '2026-02-01' AND "+
				"first_stored_at <= parseDateTime64BestEffort($1, 3, 'UTC')", first.AsOf).Scan(&stored); err != nil {
				t.Fatal(err)
			}
			if total != float64(stored) || stored < uint64(acknowledged) {
				t.Errorf("%v runs in the pages as of %s, %d were stored until then, %d were acknowledged before the first", total,
					first.AsOf, stored, acknowledged)
			}
		}
	}
}
