package clickhouse_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/olap/clickhouse"
	"github.com/runlens/runlens/olap/clickhouse/clickhousetest"
)

// From whom a row policy hides rows nothing is answered, at the start and while running.
func TestRowPolicies(t *testing.T) {
	const user = "<%s><password>x</password><networks><ip>::/0</ip></networks><profile>default</profile>" +
		"<quota>default</quota><databases><hidden><runs><filter>%s</filter></runs>" +
		"<others><filter>0</filter></others></hidden></databases></%[1]s>"
	node, err := clickhousetest.NewNode(clickhousetest.NodeConfig{
		Name: "hiding", Users: fmt.Sprintf(user, "narrow", "n = 1") + fmt.Sprintf(user, "whole", "1"),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(node.Remove)
	node.Answers(t)
	clickhouse.LookForPoliciesEvery(t, 10*time.Millisecond)
	for _, scheme := range []string{"http", "clickhouse"} {
		open := func(user string) (*clickhouse.Server, error) {
			return clickhouse.Open(t.Context(), clickhouse.Config{
				Logger: slog.New(slog.DiscardHandler), Tables: []string{"runs"},
				URL: fmt.Sprintf("%s://%s:x@%s/hidden", scheme, user, node.Addr(scheme)),
			})
		}
		narrow, err := open("narrow") // there are no rows yet
		if err != nil {
			t.Fatal(err)
		}
		node.Do(t, "CREATE TABLE hidden.runs (n UInt64) ENGINE = MergeTree ORDER BY n", "INSERT INTO hidden.runs VALUES (7)",
			"CREATE TABLE IF NOT EXISTS hidden.others ENGINE = MergeTree ORDER BY n AS SELECT 7 AS n")
		ctx, conn := t.Context(), narrow.Conn()
		eventually(t, "it is noticed", func() bool { err = conn.Ping(ctx); return err != nil })
		var n uint64
		var rows []struct {
			N uint64 `ch:"n"`
		}
		_, querying := conn.Query(ctx, "SELECT 1")
		_, storing := conn.PrepareBatch(ctx, "INSERT INTO runs (n)")
		row := conn.QueryRow(ctx, "SELECT count() FROM runs")
		_, again := open("narrow")
		for what, err := range map[string]error{
			"Ping": err, "Query": querying, "QueryRow": row.Err(), "Scan": row.Scan(&n),
			"ScanStruct": row.ScanStruct(&struct{}{}), "Select": conn.Select(ctx, &rows, "SELECT n FROM runs"),
			"Exec":         conn.Exec(ctx, "SELECT 1"),
			"PrepareBatch": storing, "Open": again,
		} {
			if !errors.Is(err, clickhouse.ErrRowPolicy) || !strings.Contains(err.Error(), "hidden.runs") {
				t.Errorf("%s: %s: %v", scheme, what, err)
			}
		}
		narrow.Close()
		whole, err := open("whole")
		if err != nil {
			t.Fatal(err)
		}
		if err := whole.Conn().QueryRow(ctx, "SELECT count() FROM runs").Scan(&n); err != nil || n != 1 {
			t.Errorf("%s: a policy that hides nothing: %d, %v", scheme, n, err)
		}
		gone, cancel := context.WithCancel(ctx)
		cancel()
		var log bytes.Buffer
		err = clickhouse.WatchPolicies(gone, whole, slog.New(slog.NewTextHandler(&log, nil)))
		if !errors.Is(err, context.Canceled) || log.Len() > 0 {
			t.Errorf("%s: of a start that is given up: %v, logged %s", scheme, err, log.String())
		}
		whole.Close()
		node.Do(t, "DROP TABLE hidden.runs SYNC")
	}
}
