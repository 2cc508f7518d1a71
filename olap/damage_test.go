package olap_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/olap/maintain"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/rollup"
	"github.com/runlens/runlens/olap/snapshot"
)

// Damage of the rollup heals while the server runs, without any command. From its entry in the log on, questions of its
// organization are answered right, from the base tables; those of others go on from the rollup, but for the moments
// when the log is written. Servers that cache the delta are no exception.
func TestDamageHealsItself(t *testing.T) {
	t.Parallel()
	store := olaptest.OpenStore(t).Conn()
	const runs = 60
	var records olaptest.Records
	for n := range runs {
		for _, organization := range []string{"acme", "globex"} {
			run, ada := runOn(n, 1+n%28, "COMPLETED"), "ada@example.com"
			run.Organization, run.Identifier = organization, &ada
			records.Runs = append(records.Runs, run)
		}
	}
	olaptest.Load(t, store, records)
	refreshed(t, rollup.New(store, quiet, 0))
	conn := olaptest.Hold(store)
	fromRollup := func() bool { return strings.Contains(counted(conn), "rollup_runs") }
	engine := newEngine(conn)
	engine.Use(asLarge)
	people := totals
	people.Dimensions = []string{"user_identifier"}
	count := func(organization string) float64 { return ask(t, engine, organization, totals).Rows[0][0].(float64) }
	damaged := func() bool {
		s, err := snapshot.ReadLog(t.Context(), store)
		if err != nil {
			t.Fatal(err)
		}
		return len(s.Damaged) > 0
	}
	sample := olaptest.NewSample(2)
	for _, damage := range []string{
		"ALTER TABLE rollup_runs DELETE WHERE organization_id = 'acme' AND toDayOfMonth(created_at) = 3" +
			" SETTINGS mutations_sync = 2",
		"ALTER TABLE initiator_keys DELETE WHERE organization_id = 'acme' SETTINGS mutations_sync = 2",
	} {
		if !sample.Try() {
			continue
		}
		if n := count("acme"); n != runs {
			t.Fatalf("%v runs before the damage", n)
		}
		execute(t, store, damage)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			checker := rollup.NewChecker(store, olaptest.Anyone, quiet)
			maintain.New("check", checker, quiet, 0.5, 10*time.Millisecond, store.Ping).Run(ctx)
		}()
		for deadline := time.Now().Add(10 * time.Minute); !damaged(); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("no checker found the damage")
			}
		}
		queries, others := 0, 0
		for deadline := time.Now().Add(10 * time.Minute); damaged(); queries++ {
			if time.Now().After(deadline) {
				t.Fatal("no checker repaired the damage")
			}
			if n := count("acme"); n != runs || fromRollup() && damaged() {
				t.Errorf("%v runs, want %d; from the rollup: %v", n, runs, fromRollup())
			}
			if row := ask(t, engine, "acme", people).Rows[0]; row[0] != "ada@example.com" || row[2].(float64) != runs {
				t.Errorf("%v, want all runs of one person", row)
			}
			if n := count("globex"); n != runs {
				t.Errorf("another organization: %v runs, want %d", n, runs)
			}
			if !fromRollup() {
				others++
			}
		}
		if queries == 0 {
			t.Error("no query ran while the rollup was damaged")
		}
		// An entry that is written between plan and statement makes the statement fail, and the next one read base rows.
		if others > 2 {
			t.Errorf("%d of %d answers of another organization came from base rows", others, queries)
		}
		if n := count("acme"); n != runs || !fromRollup() {
			t.Errorf("after the repair: %v runs, want %d; from the rollup: %v", n, runs, fromRollup())
		}
		stop()
		<-ended
	}
	sound(t, store)
}
