package olap_test

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/ingest/purge"
	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/plan"
	"github.com/runlens/runlens/olap/rollup"
)

// purging is a store with two organizations, of which both have two people, and what asks both by several engines that
// cache answers.
func purging(t *testing.T) (conn driver.Conn, askAll func(when string, wanted map[string]float64)) {
	conn = olaptest.OpenStore(t).Conn()
	people := []string{"ada@example.com", "bob@example.com"}
	for _, organization := range []string{"acme", "globex"} {
		run := runOn(9, 5, "COMPLETED")
		run.Organization, run.Identifier = organization, &people[0]
		records := olaptest.Records{Runs: []olaptest.Run{run}}
		for n := range 4 {
			record := run.By(people[n%2])
			record.ID = olaptest.ShortID(n)
			records.Attributions = append(records.Attributions, record)
		}
		olaptest.Load(t, conn, records)
	}
	later(t, conn, storeClock(t, conn))
	refreshed(t, rollup.New(conn, quiet, 0))
	engines := map[string]*olap.Engine{}
	for name, options := range map[string]plan.Options{"small": {}, "large": asLarge} {
		engines[name] = engineWith(conn, options)
		engines[name].CacheAnswers(1 << 20)
	}
	q := olaptest.Query{Model: "agent_user_activity", Metrics: []string{"interaction_count"}, Range: january, Limit: 5}
	return conn, func(when string, wanted map[string]float64) {
		t.Helper()
		for name, engine := range engines {
			for organization, want := range wanted {
				if got := all(t, engine, organization, q); !reflect.DeepEqual(got, [][]any{{want}}) {
					t.Errorf("%s, %s, %s: %v, want %v", name, organization, when, got, want)
				}
			}
		}
	}
}

// What an organization was answered in the middle of a purge is not answered from a cache after it. Another one has the
// same answers all the time.
func TestAnswersOfAPurgeAreNotKept(t *testing.T) {
	conn, askAll := purging(t)
	held := olaptest.Hold(conn)
	asked := false
	held.After("ALTER TABLE initiator_keys DELETE", func() {
		asked = true
		for range 3 { // the second answer is cached
			askAll("in the middle", map[string]float64{"acme": 4, "globex": 4})
		}
	})
	if err := purge.Person("acme", "ada@example.com").Run(t.Context(), held, func(purge.Step) {}); err != nil {
		t.Fatal(err)
	}
	if !asked {
		t.Error("nothing was asked in the middle")
	}
	askAll("after it", map[string]float64{"acme": 2, "globex": 4})
}

// Nor is it when the purge fails after it has changed more.
func TestAnswersOfAPurgeThatFailsAreNotKept(t *testing.T) {
	conn, askAll := purging(t)
	held := olaptest.Hold(conn)
	ctx, cancel := context.WithCancel(t.Context())
	held.After("ALTER TABLE initiator_keys DELETE", func() {
		for range 3 { // the second answer is cached
			askAll("in the middle", map[string]float64{"acme": 4, "globex": 4})
		}
	})
	held.After("ALTER TABLE attributions DELETE", cancel)
	err := purge.Person("acme", "ada@example.com").Run(ctx, held, func(purge.Step) {})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that it is canceled", err)
	}
	askAll("after it", map[string]float64{"acme": 2, "globex": 4})
}
