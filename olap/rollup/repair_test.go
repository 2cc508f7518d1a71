package rollup_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/rollup"
	"github.com/runlens/runlens/olap/snapshot"
)

var ofOneRun = "organization_id = 'acme' AND run_id = '" + olaptest.ID(1).String() + "'"

const rollupRow = "organization_id, created_at, run_id, state, agent_id, initiator_key, initiator_name, first_stored_at"

// damages are statements that damage the rollup of acme, and the sources whose rollup that is.
var damages = map[string]struct {
	source     string
	statements []string
}{
	"a row altered": {"runs", []string{
		"INSERT INTO rollup_runs (" + rollupRow + ", sign) SELECT " + rollupRow + ", -1 FROM rollup_runs WHERE " + ofOneRun,
		"INSERT INTO rollup_runs (" + rollupRow + ", sign) SELECT " + strings.Replace(rollupRow, "state", "state + 64", 1) +
			", 1 FROM rollup_runs WHERE " + ofOneRun + " AND sign = 1",
	}},
	"a row missing": {"runs", []string{"ALTER TABLE rollup_runs DELETE WHERE " + ofOneRun +
		" SETTINGS mutations_sync = 2"}},
	"a row doubled": {"runs", []string{
		"SYSTEM STOP MERGES rollup_runs", // which would take it out
		"INSERT INTO rollup_runs (" + rollupRow + ", sign) SELECT " + rollupRow + ", 1 FROM rollup_runs WHERE " + ofOneRun,
	}},
	"a column altered that is derived": {"runs", []string{
		"ALTER TABLE rollup_runs MODIFY COLUMN runs REMOVE MATERIALIZED",
		"ALTER TABLE rollup_runs UPDATE runs = 0 WHERE " + ofOneRun + " SETTINGS mutations_sync = 2",
		"ALTER TABLE rollup_runs MODIFY COLUMN runs Int8 MATERIALIZED if(bitAnd(bitShiftRight(state, 3), 7) = 1, sign, 0)",
	}},
	"an attribution missing": {"attributions", []string{
		"ALTER TABLE rollup_attributions DELETE WHERE organization_id = 'acme' AND toMonth(occurred_at) = 3 SETTINGS " +
			"mutations_sync = 2",
	}},
	"a record that the source does not have": {"attributions", []string{
		"INSERT INTO rollup_attributions (organization_id, occurred_at, attribution_id, agent_id, activity_type, " +
			"first_stored_at, sign) SELECT 'acme', '2019-01-01 00:00:00', generateUUIDv4(), generateUUIDv4(), 'initiated', " +
			"'2019-01-01 00:00:00', 1",
	}},
	"a name altered": {"runs", []string{
		"INSERT INTO initiator_keys SELECT organization_id, initiator_key, 'eve@example.com', initiator_name FROM " +
			"initiator_keys WHERE organization_id = 'acme'",
		"ALTER TABLE initiator_keys DELETE WHERE organization_id = 'acme' AND initiator_identifier = 'ada@example.com' " +
			"SETTINGS mutations_sync = 2",
	}},
	"a name missing": {"runs",
		[]string{"ALTER TABLE initiator_keys DELETE WHERE organization_id = 'acme' SETTINGS mutations_sync = 2"}},
	// Merged in this mode, a doubled row goes, and stays in the projections.
	"projections": {"runs", []string{
		"INSERT INTO rollup_runs (" + rollupRow + ", sign) SELECT " + rollupRow + ", 1 FROM rollup_runs WHERE " + ofOneRun,
		"ALTER TABLE rollup_runs MODIFY SETTING deduplicate_merge_projection_mode = 'ignore'",
		"OPTIMIZE TABLE rollup_runs FINAL",
		"ALTER TABLE rollup_runs MODIFY SETTING deduplicate_merge_projection_mode = 'rebuild'",
	}},
}

func execute(t *testing.T, conn driver.Conn, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if err := conn.Exec(ctx, statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// steps lets a checker work until a condition is true.
func steps(t *testing.T, c *rollup.Checker, ended func() bool) {
	t.Helper()
	olaptest.Until(t, "the steps of the checker", func() bool {
		if ended() {
			return true
		}
		if _, err := c.Step(ctx); err != nil {
			t.Fatal(err)
		}
		return false
	})
}

// Damage of every kind is found, keeps queries of its organization and source away from the rollup, and is repaired.
func TestDamageIsRepaired(t *testing.T) {
	conn := olaptest.OpenStore(t).Conn()
	loadMonths(t, conn, 40, "RUNNING", 3)
	all(t, conn)
	sample := olaptest.NewSample(4)
	for name, c := range damages {
		if !sample.Try() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			execute(t, conn, c.statements...)
			if found := check(t, conn); len(found) == 0 {
				t.Fatal("the command does not find it")
			}
			checker := rollup.NewChecker(conn, olaptest.Anyone, quiet)
			steps(t, checker, func() bool { return len(state(t, conn).Damaged) > 0 })
			if !checker.Urgent(ctx) {
				t.Error("a repair is not urgent")
			}
			s := state(t, conn)
			if len(s.Damaged) != 1 || !s.Watermark(snapshot.Records{Organization: "acme", Source: c.source}).IsZero() {
				t.Errorf("queries may use it: %+v", s.Damaged)
			}
			if s.Watermark(snapshot.Records{Organization: "globex", Source: c.source}).IsZero() {
				t.Error("queries of another organization may not use the rollup")
			}
			execute(t, conn, "SYSTEM START MERGES rollup_runs")
			steps(t, checker, func() bool { return len(state(t, conn).Damaged) == 0 })
			if checker.Urgent(ctx) {
				t.Error("a comparison is urgent")
			}
			sound(t, conn)
			if n := number(t, conn, "SELECT toInt64(sum(runs)) FROM rollup_runs"); n != 80 {
				t.Errorf("%d runs, want 80", n)
			}
		})
	}
}

// loadSmall stores runs 0 to n-1 of one organization in one quarter, in a status.
func loadSmall(t *testing.T, conn driver.Conn, n int, status string) {
	t.Helper()
	var records olaptest.Records
	at, ada := time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC), "ada@example.com"
	for i := range n {
		records.Runs = append(records.Runs, olaptest.Run{Organization: "acme", ID: olaptest.ID(i),
			AgentID: olaptest.ID(i % 3), CreatedAt: at,
			Kind: "agent", Status: status, Identifier: &ada, UpdatedAt: at.Add(time.Duration(len(status)) * time.Hour)})
	}
	olaptest.Load(t, conn, records)
}

var errDied = errors.New("the process died")

// A dyingConn sends some statements that change something, and then nothing any more.
type dyingConn struct {
	driver.Conn
	left int
}

func (c *dyingConn) Exec(ctx context.Context, sql string, args ...any) error {
	if c.left--; c.left < 0 {
		return errDied
	}
	return c.Conn.Exec(ctx, sql, args...)
}

func (c *dyingConn) Query(ctx context.Context, sql string, args ...any) (driver.Rows, error) {
	if c.left < 0 {
		return nil, errDied
	}
	return c.Conn.Query(ctx, sql, args...)
}

// A process dies after each of its statements. From the first entry on until the rollup is repaired there is an entry,
// and another process finishes what it began.
func TestRepairSurvivesCrashes(t *testing.T) {
	store := olaptest.OpenStore(t).Conn()
	loadSmall(t, store, 8, "RUNNING")
	all(t, store)
	defer rollup.SetClaimAge(rollup.SetClaimAge(0)) // the process that died is this one
	sample := olaptest.NewSample(24)
	for crash := 0; ; crash++ {
		if !sample.Try() {
			continue
		}
		execute(t, store, damages["a row missing"].statements...)
		execute(t, store, damages["a name altered"].statements...)
		dying := &dyingConn{Conn: store, left: crash}
		checker := rollup.NewChecker(dying, olaptest.Anyone, quiet)
		noted, ended := false, false
		olaptest.Until(t, "the damage is repaired", func() bool {
			_, err := checker.Step(ctx)
			if err != nil && !errors.Is(err, errDied) {
				t.Fatal(err)
			}
			there := len(state(t, store).Damaged) > 0
			ended = noted && !there
			noted = noted || there
			return err != nil || ended
		})
		if ended && len(check(t, store)) > 0 {
			t.Errorf("after %d statements it is damaged without an entry", crash)
		}
		// Records arrive and are refreshed before the repair continues.
		loadSmall(t, store, 8+crash, []string{"RUNNING", "COMPLETED"}[crash%2])
		all(t, store)
		if ended && dying.left >= 0 {
			if crash < 12 {
				t.Errorf("repaired with %d statements", crash)
			}
			return
		}
		other := rollup.NewChecker(store, olaptest.Anyone, quiet)
		if !noted {
			steps(t, other, func() bool { return len(state(t, store).Damaged) > 0 })
		}
		steps(t, other, func() bool { return len(state(t, store).Damaged) == 0 })
		if found := check(t, store); len(found) > 0 {
			t.Errorf("after a crash after %d statements: %+v", crash, found)
		}
	}
}

// Several servers find and repair the same damage.
func TestSeveralCheckersRepair(t *testing.T) {
	conn := refreshed(t, 40)
	for _, c := range damages {
		if c.source == "attributions" {
			execute(t, conn, c.statements...)
		}
	}
	execute(t, conn, damages["a row missing"].statements...)
	execute(t, conn, "ALTER TABLE rollup_runs DROP PARTITION 20262") // of both organizations
	servers := 3
	if testing.Short() {
		servers--
	}
	var checkers sync.WaitGroup
	for range servers {
		checkers.Go(func() {
			checker := rollup.NewChecker(conn, olaptest.Anyone, quiet)
			for range 12 { // more than it takes: 7 to 9 steps repair all
				if _, err := checker.Step(ctx); err != nil {
					t.Error(err)
				}
			}
		})
	}
	checkers.Wait()
	steps(t, rollup.NewChecker(conn, olaptest.Anyone, quiet), func() bool { return len(state(t, conn).Damaged) == 0 })
	sound(t, conn)
}

// A change damages the rollup once more in the middle of a repair, and fails. What it left is repaired too.
func TestDamageDuringARepair(t *testing.T) {
	conn := olaptest.OpenStore(t).Conn()
	loadSmall(t, conn, 8, "RUNNING")
	all(t, conn)
	sample := olaptest.NewSample(20)
	for number, hit := 1, true; hit; number += 3 {
		if !sample.Try() {
			continue
		}
		hit = false
		all(t, conn) // so that the watermark is in use
		execute(t, conn, damages["a row missing"].statements...)
		steps(t, rollup.NewChecker(conn, olaptest.Anyone, quiet), func() bool { return len(state(t, conn).Damaged) > 0 })
		held := olaptest.Hold(conn)
		held.Before(number, func() {
			hit = true
			failChange(t, conn)
		})
		steps(t, rollup.NewChecker(held, olaptest.Anyone, quiet), func() bool { return len(state(t, conn).Damaged) == 0 })
		if found := check(t, conn); len(found) > 0 {
			t.Errorf("damaged before statement %d of a repair: %+v", number, found)
		}
	}
}
