package olap_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/settle"
)

// A source may change what should never change: created_at of runs, the content and occurred_at of attribution
// records. Whatever it sends, in whatever order and however often, one refresh later every record counts once, in
// every strategy alike (contract 4.20).
func TestBrokenSourcesCountOnce(t *testing.T) {
	ctx := context.Background()
	store := olaptest.OpenStore(t)
	conn := store.Conn()
	engines := map[string]*olap.Engine{}
	for _, name := range []string{"small", "remembering", "looking"} {
		e := olap.NewEngine(conn, []byte("secret"))
		e.ForgetSizes()
		e.TrustClock()
		if name != "small" {
			e.TakeAsLarge()
		}
		if name == "looking" {
			e.RememberNothing()
		}
		e.WatchEvery(time.Millisecond)
		engines[name] = e
	}
	settler := settle.New(conn, quiet, 0)
	organizations := 0
	rapid.Check(t, func(t *rapid.T) {
		organizations++
		organization := fmt.Sprintf("org-%d", organizations)
		batches := olaptest.DrawBroken(t, organization)
		records := olaptest.Join(batches)
		if !olaptest.UniqueLiveSlugs(records, organization) {
			t.Skip("two agents that are not deleted hold one slug")
		}
		maintain := func() {
			switch n := rapid.IntRange(0, 9).Draw(t, "maintenance"); {
			case n < 4:
				settled(t, settler)
			case n == 4:
				for _, table := range []string{"runs", "attributions", "settled_runs", "settled_attributions"} {
					if err := conn.Exec(ctx, "OPTIMIZE TABLE "+table+" FINAL"); err != nil {
						t.Fatal(err)
					}
				}
			case n == 5:
				if err := settle.Rebuild(ctx, conn, settle.Abandoned); err != nil {
					t.Fatal(err)
				}
			case n == 6: // what is remembered now must not hold later
				ask(t, engines["remembering"], organization, olaptest.DrawQuery(t))
			}
		}
		for _, batch := range batches {
			olaptest.Load(t, conn, batch)
			maintain()
		}
		settled(t, settler)
		maintain()
		for range 4 {
			name := rapid.SampledFrom([]string{"small", "remembering", "looking"}).Draw(t, "engine")
			q := olaptest.DrawQuery(t)
			if rapid.Bool().Draw(t, "sum") {
				q = olaptest.DrawSum(t)
			}
			compare(t, engines[name], records, organization, q)
		}
	})
	settled(t, settler)
	if differences, err := settle.Check(ctx, conn); err != nil || len(differences) > 0 {
		t.Errorf("settled records differ from their sources: %+v, %v", differences, err)
	}
}
