package olap_test

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/olaptest"
)

// Many callers run the same few queries at once while rows arrive. They share executions, and yet every answer has what
// was acknowledged before the question and nothing that was first stored after its asOf, for the own organization,
// under a queryId of its own.
func TestSharedAnswersAreFresh(t *testing.T) {
	t.Parallel()
	store := olaptest.OpenStore(t)
	engine := olap.NewEngine(store.Conn(), []byte("secret"))
	const callers, rows = 8, 120
	var acknowledged atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := range rows {
			acme := runOn(n, 1+n%28, "RUNNING")
			olaptest.Load(t, store.Conn(), olaptest.Records{Runs: []olaptest.Run{acme}})
			acknowledged.Add(1)
		}
	}()
	questions := []olaptest.Query{totals, byDay(100), byDay(3)}
	var answers, shared atomic.Int64
	var mu sync.Mutex
	counts := map[string]float64{} // the most runs that any answer had, by its asOf
	var ids sync.Map
	var group sync.WaitGroup
	for range callers {
		group.Go(func() {
			for running := true; running; {
				select {
				case <-done:
					running = false
				default:
				}
				for i, q := range questions {
					before := acknowledged.Load()
					asked, err := request(acme, q.Body())
					if err != nil {
						t.Error(err)
					}
					result, err := engine.Run(context.Background(), asked)
					if err != nil {
						t.Error(err)
						return
					}
					var r response
					var named struct{ QueryID uuid.UUID }
					body := result.AppendJSON(nil)
					if err := json.Unmarshal(body, &r); err != nil {
						t.Error(err)
					}
					if err := json.Unmarshal(body, &named); err != nil || named.QueryID != asked.QueryID {
						t.Errorf("queryId %s, want the request's own %s, %v", named.QueryID, asked.QueryID, err)
					}
					answers.Add(1)
					if _, seen := ids.LoadOrStore(result.Execution(), true); seen {
						shared.Add(1)
					}
					if i == 2 {
						continue // the first page only: its rows are not all
					}
					count := summed(r.Rows)
					if count < float64(before) {
						t.Errorf("%v runs, %d were acknowledged before", count, before)
					}
					mu.Lock()
					counts[r.AsOf] = max(counts[r.AsOf], count)
					mu.Unlock()
				}
			}
		})
	}
	group.Wait()
	for asOf, count := range counts {
		if stored := storedUntil(t, store.Conn(), asOf); count > float64(stored) {
			t.Errorf("as of %s: %v runs, %d were stored until then", asOf, count, stored)
		}
	}
	if shared.Load() == 0 {
		t.Errorf("none of %d answers came from a shared execution", answers.Load())
	}
	t.Logf("%d of %d answers came from an execution that had served before", shared.Load(), answers.Load())

	// What differs is not shared: another organization sees nothing of this one.
	var wait sync.WaitGroup
	for _, organization := range []string{"acme", "globex", "acme", "globex"} {
		wait.Go(func() {
			got := ask(t, engine, organization, totals)
			if want := map[string]float64{"acme": rows, "globex": 0}[organization]; got.Rows[0][0] != want {
				t.Errorf("%s has %v runs, want %v", organization, got.Rows[0][0], want)
			}
		})
	}
	wait.Wait()
}
