package purge_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/purge"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/rollup"
	"github.com/runlens/runlens/schema"

	"github.com/google/uuid"
)

func number(t *testing.T, conn driver.Conn, query string) (n uint64) {
	t.Helper()
	if err := conn.QueryRow(context.Background(), query).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

// filled is a store with two organizations that have the same ids and people, in several parts and versions.
func filled(t *testing.T) driver.Conn {
	conn := olaptest.OpenStore(t).Conn()
	at := time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)
	ada, bob := "ada@example.com", "bob@example.com"
	for _, organization := range []string{"acme", "globex"} {
		for version := range 2 {
			var records olaptest.Records
			for i := range 20 {
				identifier := &ada
				if i%2 == 1 {
					identifier = &bob
				}
				person := *identifier // of a record, which never changes
				clock := at.AddDate(0, i%2, 0)
				if version == 1 && i == 19 { // but the source changes what should never change
					clock = clock.Add(time.Millisecond)
				}
				if version == 1 && i == 2 {
					identifier = &bob // ada is only in a superseded version
				}
				name := olaptest.SharingNames[i/4%2]
				records.Agents = append(records.Agents,
					olaptest.Agent{Organization: organization, ID: olaptest.ID(i), Name: "A", UpdatedAt: at})
				records.Runs = append(
					records.Runs,
					olaptest.Run{Organization: organization, ID: olaptest.ID(i), CreatedAt: clock, AgentID: olaptest.ID(1),
						Kind: "agent", Status: "RUNNING", Identifier: identifier, Name: &name, UpdatedAt: at.AddDate(0, i%2, version)},
				)
				records.Attributions = append(
					records.Attributions,
					olaptest.Attribution{
						Organization:   organization,
						ID:             olaptest.ID(i),
						RunID:          olaptest.ID(i),
						AgentID:        olaptest.ID(1),
						Identifier:     person,
						Activity:       "initiated",
						InitiationType: "human",
						Source:         "web",
						OccurredAt:     clock,
					},
				)
			}
			olaptest.Load(t, conn, records)
		}
		if err := conn.Exec(context.Background(), "INSERT INTO api_keys (key_id, organization_id, name, scopes, "+
			"secret_hash, created_at) VALUES ('"+organization+"', '"+organization+"', '', [], '', now64(3))"); err != nil {
			t.Fatal(err)
		}
		damage := "INSERT INTO rollup_log (kind, organization_id, source, latest) VALUES ('damage', " +
			"'" + organization + "', 'runs', (1, 0, now64(3)))"
		if err := conn.Exec(context.Background(), damage); err != nil {
			t.Fatal(err)
		}
		const replacement = "INSERT INTO replacements SELECT 1, 'source', {organization:String}, 'run', generateUUIDv4()"
		if err := conn.Exec(context.Background(), replacement, clickhouse.Named("organization", organization)); err != nil {
			t.Fatal(err)
		}
		if err := conn.Exec(context.Background(), "INSERT INTO api_key_uses VALUES "+
			"('"+organization+"', now64(3))"); err != nil {
			t.Fatal(err)
		}
		const asked = "INSERT INTO usage_log (organization_id, at) SELECT {organization:String}, now64(3)"
		if err := conn.Exec(context.Background(), asked, clickhouse.Named("organization", organization)); err != nil {
			t.Fatal(err)
		}
	}
	if err := rollup.New(conn, slog.New(slog.DiscardHandler), 0).Refresh(context.Background()); err != nil {
		t.Fatal(err)
	}
	return conn
}

func run(t *testing.T, conn driver.Conn, p *purge.Purge) {
	t.Helper()
	if err := p.Run(context.Background(), conn, func(purge.Step) {}); err != nil {
		t.Fatal(err)
	}
	if err := p.Count(context.Background(), conn); err != nil {
		t.Fatal(err)
	}
	for _, s := range p.Steps {
		if s.Rows != 0 {
			t.Errorf("%s: %d rows are left", s.Table, s.Rows)
		}
	}
}

// consistent checks that what was taken out is not refreshed any more either.
func consistent(t *testing.T, conn driver.Conn) {
	t.Helper()
	for range 2 {
		if found, err := rollup.Check(context.Background(), conn); err != nil || len(found) > 0 {
			t.Errorf("records in the rollup differ: %+v, %v", found, err)
		}
		if err := rollup.New(conn, slog.New(slog.DiscardHandler), 0).Refresh(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
}

// An organization is gone from every table and projection; another one keeps all of its rows.
func TestOrganization(t *testing.T) {
	conn := filled(t)
	defer consistent(t, conn)
	p := purge.Organization("acme")
	if err := p.Count(context.Background(), conn); err != nil {
		t.Fatal(err)
	}
	purged := map[string]bool{}
	for _, s := range p.Steps {
		purged[s.Table] = true
		if s.Rows == 0 {
			t.Errorf("a dry run counts no rows of %s", s.Table)
		}
	}
	var tables []string
	if err := conn.QueryRow(context.Background(), "SELECT groupUniqArray(table) FROM system.columns"+
		" WHERE database = currentDatabase() AND name = 'organization_id' AND table IN"+
		" (SELECT name FROM system.tables WHERE database = currentDatabase() AND engine LIKE "+
		"'%MergeTree')").Scan(&tables); err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		if !purged[table] && table != schema.TableAuditLog { // the audit log outlives everything
			t.Errorf("the table %s has organizations and is not purged", table)
		}
	}
	run(t, conn, p)
	emptied := []string{
		"agents",
		"runs",
		"attributions",
		"api_keys",
		"rollup_runs",
		"rollup_attributions",
		"initiator_keys",
		"shared_initiator_keys",
		"conflicting_records",
		"usage_log",
	}
	for _, table := range emptied {
		gone := number(t, conn, "SELECT count() FROM "+table+" WHERE organization_id = 'acme'")
		if kept := number(t, conn, "SELECT count() FROM "+table+" WHERE organization_id = 'globex'"); gone != 0 || kept == 0 {
			t.Errorf("%s: %d rows of the organization, %d of the other one", table, gone, kept)
		}
	}
	if n := number(t, conn, "SELECT count() FROM api_key_uses"); n != 1 {
		t.Errorf("%d uses of keys, want that of the other organization", n)
	}
	for table, projection := range map[string]string{"attributions": "by_person", "runs": "by_last_stored_at"} {
		of := func(organization string) uint64 {
			return number(
				t, conn,
				"SELECT count() FROM mergeTreeProjection(currentDatabase(), '"+table+"', '"+projection+"') "+
					"WHERE organization_id = '"+organization+"'",
			)
		}
		if gone, kept := of("acme"), of("globex"); gone != 0 || kept == 0 {
			t.Errorf("%s.%s: %d rows of the organization, %d of the other one", table, projection, gone, kept)
		}
	}
}

const numberOfAda = "reinterpretAsUInt128(sipHash128('ada@example.com'))"

// A person is gone from one organization, superseded versions included, and no run with it.
func TestPerson(t *testing.T) {
	conn := filled(t)
	defer consistent(t, conn)
	run(t, conn, purge.Person("acme", " ADA@example.com "))
	for query, want := range map[string]uint64{
		"SELECT uniqExact(run_id) FROM runs WHERE organization_id = " +
			"'acme'": 20,
		"SELECT countIf(tupleElement(record, 'initiator_name') IS NULL) FROM runs FINAL WHERE organization_id = 'acme' " +
			"AND " + schema.CurrentRunSQL: 9,
		"SELECT countIf(tupleElement(record, 'initiator_identifier') = 'bob@example.com') FROM runs FINAL WHERE " +
			"organization_id = 'acme'": 11,
		"SELECT countIf(tupleElement(record, 'initiator_identifier') = 'ada@example.com') FROM runs FINAL WHERE " +
			"organization_id = 'globex'": 9,
		// The number of an identifier is personal data too, and who is not there any more is not counted.
		"SELECT count() FROM runs WHERE organization_id = 'acme' AND tupleElement(record, 'initiator_identifier') = " +
			"'ada@example.com'": 0,
		"SELECT count() FROM runs WHERE organization_id = 'acme' AND " + numberOfAda + " IN (tupleElement(record, " +
			"'initiator'), tupleElement(initiator, 'initiator'))": 0,
		"SELECT uniqExact(organization_id) FROM runs WHERE " + numberOfAda + " IN (tupleElement(record, 'initiator'), " +
			"tupleElement(initiator, 'initiator'))": 1,
		"SELECT uniqExactIf(tupleElement(initiator, 'initiator'), tupleElement(initiator, 'initiator') != 0) FROM runs " +
			"FINAL WHERE organization_id = 'acme'": 1,
		"SELECT uniqExactIf(tupleElement(initiator, 'initiator'), tupleElement(initiator, 'initiator') != 0) FROM runs " +
			"FINAL WHERE organization_id = 'globex'": 2,
		"SELECT count() FROM attributions WHERE organization_id = 'acme' AND user_identifier = " +
			"'ada@example.com'": 0,
		"SELECT count() FROM mergeTreeProjection(currentDatabase(), 'attributions', 'by_person') WHERE organization_id = " +
			"'acme' AND user_identifier = 'ada@example.com'": 0,
		"SELECT count() FROM mergeTreeProjection(currentDatabase(), 'runs', 'by_last_stored_at') WHERE organization_id = " +
			"'acme' AND tupleElement(record, 'initiator_identifier') = 'ada@example.com'": 0,
		"SELECT count() FROM rollup_runs WHERE organization_id = 'acme' AND bitShiftRight(initiator_key, 48) = " +
			"bitShiftRight(" + numberOfAda + ", 48)": 0,
		"SELECT count() FROM rollup_runs WHERE organization_id = 'globex' AND bitShiftRight(initiator_key, 48) = " +
			"bitShiftRight(" + numberOfAda + ", 48)": 9,
		"SELECT count() FROM initiator_keys WHERE organization_id = 'acme' AND initiator_identifier = " +
			"'ada@example.com'": 0,
		"SELECT count() FROM initiator_keys FINAL WHERE organization_id = 'globex' AND initiator_identifier = " +
			"'ada@example.com'": 2,
		"SELECT count() FROM shared_initiator_keys FINAL WHERE organization_id = " +
			"'acme'": 1,
		"SELECT count() FROM shared_initiator_keys FINAL WHERE organization_id = " +
			"'globex'": 2,
		"SELECT uniqExact(attribution_id) FROM attributions WHERE organization_id = 'globex' AND user_identifier = " +
			"'ada@example.com'": 10,
		"SELECT uniqExact(attribution_id) FROM attributions WHERE organization_id = " +
			"'acme'": 10,
	} {
		if n := number(t, conn, query); n != want {
			t.Errorf("%d, want %d: %s", n, want, query)
		}
	}
}

// Single records are taken out, of one organization only.
func TestRecords(t *testing.T) {
	conn := filled(t)
	defer consistent(t, conn)
	for kind, table := range map[normalize.Kind]string{normalize.KindAgent: "agents", normalize.KindRun: "runs",
		normalize.KindAttribution: "attributions"} {
		if err := purge.Records(context.Background(), conn, kind, "acme",
			[]uuid.UUID{olaptest.ID(3), olaptest.ID(4)}); err != nil {
			t.Fatal(err)
		}
		if n := number(t, conn, "SELECT uniqExact(organization_id, "+string(kind)+"_id) FROM "+table); n != 38 {
			t.Errorf("%d %s records, want 38", n, kind)
		}
	}
}

// A run that moved, and an attribution record under two clocks, go with all of their clocks; and what is stored in
// their place counts as if it were the first.
func TestRecordsThatMoved(t *testing.T) {
	ctx := context.Background()
	conn := filled(t)
	defer consistent(t, conn)
	for kind, table := range map[normalize.Kind]string{normalize.KindRun: "runs",
		normalize.KindAttribution: "attributions"} {
		of := " WHERE organization_id = 'acme' AND " + string(kind) + "_id = toUUID('" + olaptest.ID(19).String() + "')"
		if n := number(t, conn, "SELECT count() FROM "+table+" FINAL"+of); n != 2 {
			t.Errorf("%d rows of the %s, want one under each clock", n, kind)
		}
		if err := purge.Records(ctx, conn, kind, "acme", []uuid.UUID{olaptest.ID(19)}); err != nil {
			t.Fatal(err)
		}
		if n := number(t, conn, "SELECT count() FROM "+table+of); n != 0 {
			t.Errorf("%d rows of the %s are left", n, kind)
		}
		const noted = "SELECT count() FROM conflicting_records WHERE organization_id = '%s' AND kind = '%s'"
		if n := number(t, conn, fmt.Sprintf(noted, "acme", kind)); n != 0 {
			t.Errorf("%d conflicts of the %s are left", n, kind)
		}
		if n := number(t, conn, fmt.Sprintf(noted, "globex", kind)); n != 1 {
			t.Errorf("%d conflicts of the other organization's %s, want 1", n, kind)
		}
	}
}
