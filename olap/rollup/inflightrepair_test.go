package rollup_test

import (
	"testing"
	"time"

	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/rollup"
	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
)

// A refresh batch finds that another clock of an attribution record counts than the one that the rollup has, and writes
// damage. A checker begins to repair it before the batch has changed anything. Afterwards the record counts once.
func TestARepairDuringTheBatchThatDamages(t *testing.T) {
	conn := olaptest.OpenStore(t).Conn()
	olaptest.Load(t, conn, olaptest.Records{
		Attributions: []olaptest.Attribution{copyOf("acme", 1, "interacted", 0)},
	})
	all(t, conn)
	// The clock was set back, and the watermark moved back.
	back, err := rollup.New(conn, quiet, 0).Claim(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := back.Done(ctx, state(t, conn).Until.Add(-time.Minute)); err != nil {
		t.Fatal(err)
	}
	const columns = "organization_id, attribution_id, run_id, agent_id, user_identifier, activity_type," +
		" run_initiation_type, source"
	execute(t, conn, "INSERT INTO attributions ("+columns+", occurred_at, first_stored_at) SELECT "+columns+
		", occurred_at + 3600, first_stored_at - 30 FROM attributions")
	held, checking := olaptest.Hold(conn), olaptest.Hold(conn)
	of := snapshot.Records{Organization: "acme", Source: schema.TableAttributions}
	compared, repaired := make(chan struct{}), make(chan struct{})
	checking.After("AS checksum", func() { close(compared) })
	held.After("INSERT INTO rollup_log (kind, organization_id", func() {
		go func() {
			defer close(repaired)
			checker := rollup.NewChecker(checking, olaptest.Anyone, quiet)
			steps(t, checker, func() bool { return state(t, conn).Damage(of) == nil })
		}()
		select {
		case <-compared:
		case <-time.After(2 * time.Second): // it waits for the batch
		}
	})
	all(t, held)
	<-repaired
	sound(t, conn)
	if n := number(t, conn, "SELECT toInt64(sum(records)) FROM rollup_attributions"); n != 1 {
		t.Errorf("the record counts %d times", n)
	}
}
