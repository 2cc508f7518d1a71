package doctor_test

import (
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/olap/doctor"
	"github.com/runlens/runlens/olap/doctor/finding"
	"github.com/runlens/runlens/olap/olaptest"
)

// A store with nothing wrong has no problem and no warning.
func TestNothingIsWrong(t *testing.T) {
	store := olaptest.OpenStore(t)
	for _, f := range patient(store).Examine(t.Context()) {
		if f.Result != finding.OK || f.Says == "" || f.Check == "" || f.Do != "" {
			t.Errorf("found %+v", f)
		}
	}
}

// The glance of a start takes some ten milliseconds where nothing is wrong: a dozen small statements.
func TestGlanceIsFewStatements(t *testing.T) {
	store := olaptest.OpenStore(t)
	held := olaptest.Hold(store.Conn())
	p := patient(store)
	p.Conn = held
	began := time.Now()
	p.Glance(t.Context())
	t.Logf("%d statements in %v", held.Sent(), time.Since(began))
	if held.Sent() > 12 {
		t.Errorf("%d statements", held.Sent())
	}
}

func TestClockThatDiffers(t *testing.T) {
	store := olaptest.OpenStore(t)
	held := olaptest.Hold(store.Conn())
	p := patient(store)
	p.Conn, p.ClockWarning = held, time.Hour // a slow machine is no difference
	for shift, want := range map[time.Duration]struct {
		result finding.Result
		says   string
	}{
		0:                {finding.OK, "time zones do not matter"},
		2 * time.Hour:    {finding.Problem, "ahead of ours"},
		-2 * time.Hour:   {finding.Problem, "behind ours"},
		30 * time.Second: {finding.OK, "time zones do not matter"},
	} {
		held.Shift(shift)
		f := about(p.Glance(t.Context()), "clock")
		do := ""
		if want.result != finding.OK {
			do = "synchronize the clocks"
		}
		expect(t, f, want.result, want.says, do)
	}
	p.ClockProblem = 3 * time.Hour
	held.Shift(2 * time.Hour)
	expect(t, about(p.Glance(t.Context()), "clock"), finding.Warning, "ahead of ours", "synchronize")
}

func TestDiskThatIsFull(t *testing.T) {
	store := olaptest.OpenStore(t)
	p := patient(store)
	p.DiskWarning = doctor.Space{Percent: 100.1}
	expect(t, about(p.Glance(t.Context()), "disks"), finding.Warning, "a merge needs", "free some space")
	p.DiskProblem = doctor.Space{Bytes: 1 << 60}
	expect(t, about(p.Glance(t.Context()), "disks"), finding.Problem, "about to fail", "free some space")
}

// A mutation that fails, as one of an operator's own may, is tried for ever.
func TestMutationThatFails(t *testing.T) {
	store := olaptest.OpenStore(t)
	conn := store.Conn()
	olaptest.Load(t, conn, olaptest.Records{Agents: []olaptest.Agent{{Organization: "acme", ID: olaptest.ID(1)}}})
	const failing = "ALTER TABLE agents DELETE WHERE throwIf(organization_id = 'acme') SETTINGS mutations_sync = 0"
	if err := conn.Exec(t.Context(), failing); err != nil {
		t.Fatal(err)
	}
	found := func() []finding.Finding { return about(patient(store).Examine(t.Context()), "mutations") }
	olaptest.Until(t, "the mutation has failed", func() bool { return found()[0].Result != finding.OK })
	expect(t, found(), finding.Problem, "table agents fails again and again", "KILL MUTATION WHERE database = '"+
		store.Database()+"' AND table = 'agents' AND mutation_id = 'mutation_")
	if err := conn.Exec(t.Context(), "KILL MUTATION WHERE database = currentDatabase() SYNC"); err != nil {
		t.Fatal(err)
	}
	expect(t, found(), finding.OK, "no mutation fails", "")
}

// While merges are stopped a mutation neither ends nor fails.
func TestMutationThatGoesOn(t *testing.T) {
	store := olaptest.OpenStore(t)
	conn := store.Conn()
	olaptest.Load(t, conn, olaptest.Records{Agents: []olaptest.Agent{{Organization: "acme", ID: olaptest.ID(1)}}})
	for _, statement := range []string{
		"SYSTEM STOP MERGES agents", "ALTER TABLE agents DELETE WHERE organization_id = 'acme' SETTINGS mutations_sync = 0",
	} {
		if err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	p := patient(store)
	expect(t, about(p.Examine(t.Context()), "mutations"), finding.OK, "no mutation fails or takes long", "")
	p.LongMutation = 0
	expect(t, about(p.Examine(t.Context()), "mutations"), finding.Warning, "a mutation of the table agents goes on for ",
		"SYSTEM START MERGES `"+store.Database()+"`.`agents`")
	if err := conn.Exec(t.Context(), "SYSTEM START MERGES agents"); err != nil {
		t.Fatal(err)
	}
	olaptest.Until(t, "the mutation has ended", func() bool {
		return about(p.Examine(t.Context()), "mutations")[0].Result == finding.OK
	})
}

func TestTablesThatDiffer(t *testing.T) {
	store := olaptest.OpenStore(t)
	for _, statement := range []string{
		"DROP TABLE count_inserted_agents SYNC", "DROP TABLE secrets SYNC", "DROP TABLE api_keys SYNC",
		"DROP TABLE checkpoints SYNC",
		"CREATE TABLE api_keys (key_id String, a UInt8) ENGINE = MergeTree ORDER BY key_id",
		"CREATE TABLE checkpoints (name String, revision UInt64) ENGINE = ReplacingMergeTree(revision) ORDER BY revision",
		"ALTER TABLE audit_log MODIFY TTL toDateTime(at) + toIntervalYear(1)",
		"ALTER TABLE attributions MODIFY TTL toDateTime(occurred_at) + toIntervalYear(1)",
		"ALTER TABLE rollup_runs DROP PROJECTION by_agent",
		"DROP TABLE replacements SYNC",
		"CREATE TABLE replacements (source String, organization_id String, kind UInt8, id UUID)" +
			" ENGINE = MergeTree PARTITION BY kind ORDER BY (source, organization_id, kind, id)",
		"ALTER TABLE runs MODIFY SETTING deduplicate_merge_projection_mode = 'ignore'",
		"ALTER TABLE agents MODIFY SETTING fsync_after_insert = 0",
		"ALTER TABLE usage_log ADD COLUMN of_the_operator String",
		"ALTER TABLE attributions DROP COLUMN attribution_hash SETTINGS mutations_sync = 2",
		"ALTER TABLE attributions MODIFY COLUMN user_domain LowCardinality(Nullable(String)) MATERIALIZED NULL",
		"ALTER TABLE placement MODIFY COLUMN mover Int64",
		"DROP VIEW count_inserted_runs SYNC",
		"CREATE MATERIALIZED VIEW count_inserted_runs TO insert_counters AS SELECT 'runs' AS source, organization_id," +
			" toUInt64(1) AS rows, now64(3, 'UTC') AS last_stored_at FROM runs GROUP BY organization_id",
		"DROP VIEW count_conflicting_records SYNC",
		"CREATE TABLE elsewhere AS insert_counters",
		"CREATE MATERIALIZED VIEW count_conflicting_records TO elsewhere AS SELECT 'conflicting_records' AS source," +
			" organization_id, count() AS rows, now64(3, 'UTC') AS last_stored_at FROM conflicting_records" +
			" GROUP BY organization_id",
	} {
		if err := store.Conn().Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	found := about(patient(store).Examine(t.Context()), "tables")
	var says []string
	for _, f := range found {
		if f.Result == finding.OK || f.Do == "" {
			t.Errorf("found %+v", f)
		}
		says = append(says, string(f.Result)+": "+f.Says)
	}
	for _, want := range []string{
		"count_inserted_agents is missing", "secrets is missing",
		"api_keys has the engine MergeTree, and the migrations make it with ReplacingMergeTree(revision)",
		"checkpoints is sorted by (revision), and the migrations sort it by (name)",
		"attributions has a TTL", "rollup_runs lacks the projection by_agent",
		"replacements is partitioned by (kind), and the migrations partition it by (replacement)",
		"runs is not kept with deduplicate_merge_projection_mode = 'rebuild'",
		"agents is not kept with fsync_after_insert = 1", "problem: attributions lacks the column attribution_hash",
		"warning: the column user_domain of attributions is LowCardinality(Nullable(String)) MATERIALIZED NULL, and",
		"problem: the column mover of placement is Int64, and", "warning: the view count_inserted_runs selects",
		"problem: the view count_conflicting_records selects or fills",
	} {
		if !strings.Contains(strings.Join(says, "\n"), want) {
			t.Errorf("%q is not among %q", want, says)
		}
	}
	if len(found) != 14 {
		t.Errorf("found %d", len(found))
	}
}

func TestStoreWithoutTables(t *testing.T) {
	empty := of(t, "http", "tester", "void", nil)
	found := patient(empty).Examine(t.Context())
	expect(t, about(found, "migrations"), finding.Warning, "no tables yet", "runlens migrate up")
	expect(t, about(found, "tables"), finding.Unknown, "once the migrations are applied", "")
	var tables uint64
	const count = "SELECT count() FROM system.tables WHERE database = 'void'"
	if err := empty.Conn().QueryRow(t.Context(), count).Scan(&tables); err != nil || tables > 0 {
		t.Errorf("the doctor made %d tables, %v", tables, err)
	}
}

// ClickHouse's own log tables: one without a TTL, one with, and one that an earlier configuration left.
func TestLogTablesWithoutTTL(t *testing.T) {
	node := theNode(t)
	node.Do(t, "SELECT 1", "SYSTEM FLUSH LOGS", "CREATE TABLE IF NOT EXISTS system.query_log_0 AS system.query_log")
	found := about(patient(as(t, "http", "tester", nil)).Examine(t.Context()), "log tables")
	if len(found) != 2 {
		t.Fatalf("found %+v", found)
	}
	for _, f := range found {
		if strings.Contains(f.Says, "query_log_0") {
			expect(t, []finding.Finding{f}, finding.Warning, "nothing removes", "DROP TABLE system.`query_log_0`")
		} else {
			expect(t, []finding.Finding{f}, finding.Warning, "system.query_log has no TTL",
				"<clickhouse>\n    <query_log><ttl>event_date + INTERVAL 30 DAY DELETE</ttl></query_log>\n</clickhouse>")
		}
	}
}

func TestFewOpenFiles(t *testing.T) {
	found := patient(as(t, "http", "tester", nil)).Examine(t.Context())
	expect(t, about(found, "open files"), finding.Warning, "4096 files open", "<max_open_files>262144</max_open_files>")
}
