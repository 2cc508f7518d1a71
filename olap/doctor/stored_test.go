package doctor_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/plan"
	"github.com/runlens/runlens/olap/rollup"
	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
)

// Whatever a profile or a URL sets, records are stored, refreshed and compared, and the statuses of what several people
// did are right before and after it, from the base tables and from the rollup with what it lacks.
func TestNoSettingChangesWhatIsStored(t *testing.T) {
	migrated(t, "tester")
	quiet := slog.New(slog.DiscardHandler)
	for i, line := range append(storing, "") {
		for _, scheme := range []string{"http", "clickhouse"} {
			t.Run(scheme+" "+line, func(t *testing.T) {
				settings, err := url.ParseQuery(line)
				if err != nil {
					t.Fatal(err)
				}
				conn, organization := as(t, scheme, "tester", settings).Conn(), fmt.Sprintf("%s-%d", scheme, i)
				var records olaptest.Records
				for run, status := range []string{"COMPLETED", "CANCELLED", "RUNNING"} {
					at := time.Date(2026, 1, 1+run, 12, 0, 0, 0, time.UTC)
					r := olaptest.Run{Organization: organization, ID: olaptest.ID(run), AgentID: olaptest.ID(9), Kind: "agent",
						Status: "PENDING", CreatedAt: at, UpdatedAt: at}
					records.Runs = append(records.Runs, r)
					r.Status, r.UpdatedAt = status, at.Add(time.Minute)
					records.Runs = append(records.Runs, r)
					for person := range 2 {
						a := r.By(fmt.Sprintf("person-%d@example.com", person))
						a.ID = uuid.New()
						records.Attributions = append(records.Attributions, a)
					}
				}
				olaptest.Load(t, conn, records)
				statuses(t, conn, schema.OrganizationID(organization))
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if err := rollup.New(conn, quiet, 0).Refresh(ctx); err != nil {
					t.Fatal(err)
				}
				statuses(t, conn, schema.OrganizationID(organization))
				if found, err := rollup.Check(ctx, conn); err != nil || len(found) > 0 {
					t.Errorf("found %v, %v", found, err)
				}
			})
		}
	}
}

// Inserts in flight are seen, by the table that their text names, whatever a profile sets.
func TestNoSettingHidesAnInsertInFlight(t *testing.T) {
	migrated(t, "tester")
	for _, scheme := range []string{"http", "clickhouse"} {
		conn := as(t, scheme, "tester", url.Values{"log_queries_cut_to_length": {"10"}}).Conn()
		ended := olaptest.SlowInsert(t.Context(), t, conn, schema.TableRuns, "2026-01-02", 2)
		olaptest.Until(t, "it is seen", func() bool {
			in, err := snapshot.ReadInserts(t.Context(), conn)
			return err == nil && in.Oldest.Before(in.Now)
		})
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
}

// A refresh writes one part, which is there or not, whatever a profile sets of the size of blocks.
func TestNoSettingDividesARefresh(t *testing.T) {
	migrated(t, "tester")
	conn := as(t, "http", "tester",
		url.Values{"use_strict_insert_block_limits": {"1"}, "max_insert_block_size": {"1"}}).Conn()
	var records olaptest.Records
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for run := range 5 {
		records.Runs = append(records.Runs, olaptest.Run{Organization: "whole", ID: olaptest.ID(run),
			AgentID: olaptest.ID(9), Kind: "agent", Status: "COMPLETED", CreatedAt: at, UpdatedAt: at})
	}
	refresh := func() {
		if err := rollup.New(conn, slog.New(slog.DiscardHandler), 0).Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	refresh() // what other tests have left
	olaptest.Load(t, conn, records)
	last := parts(t, conn, "max(max_block_number)")
	refresh()
	written := fmt.Sprintf("countIf(min_block_number = max_block_number AND max_block_number > %d)", last)
	if got := parts(t, conn, written); got != 1 {
		t.Errorf("a refresh of 5 runs wrote %d parts", got)
	}
}

// parts is an expression over the parts of the rollup of runs, with those that were merged into others. A table numbers
// its blocks over all partitions.
func parts(t *testing.T, conn driver.Conn, expression string) (n int64) {
	t.Helper()
	err := conn.QueryRow(t.Context(), "SELECT toInt64("+expression+") FROM system.parts"+
		" WHERE database = currentDatabase() AND table = 'rollup_runs'").Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Tables are made, whatever a profile sets.
func TestNoSettingKeepsTablesFromBeingMade(t *testing.T) {
	theNode(t)
	const database = "made"
	for _, scheme := range []string{"http", "clickhouse"} {
		for name, value := range map[string]string{"data_type_default_nullable": "1", "compatibility": "22.3"} {
			store := of(t, scheme, "tester", database, url.Values{name: {value}})
			olaptest.Migrate(t, store, schema.Own)
			theNode(t).Do(t, "DROP DATABASE "+database+" SYNC")
		}
	}
}

// statuses asks for the statuses of three runs, each of two people.
func statuses(t *testing.T, conn driver.Conn, organization schema.OrganizationID) {
	t.Helper()
	for _, options := range []plan.Options{{}, {Records: 10_000_000, NoCachedDelta: true}} {
		engine := olap.NewEngine(conn, []byte("secret"))
		engine.Use(options)
		ask(t, engine, organization, `"model": "agent_user_activity", "metrics": ["attributed_run_count",
			"completed_attributed_run_count", "cancelled_attributed_run_count", "active_attributed_run_count"]`,
			[][]any{{6., 2., 2., 2.}}, true)
	}
}

// storing are settings with which statuses were wrong, or nothing was stored, refreshed or compared.
var storing = strings.Fields(`compatibility=22.3 join_default_strictness=ANY aggregate_functions_null_for_empty=1
	describe_compact_output=1 describe_include_subcolumns=1 describe_include_virtual_columns=1`)
