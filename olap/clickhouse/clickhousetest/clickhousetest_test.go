package clickhousetest_test

import (
	"context"
	"testing"

	"github.com/runlens/runlens/olap/clickhouse"
	"github.com/runlens/runlens/olap/clickhouse/clickhousetest"
)

// Every test has a database of its own, which is gone after it.
func TestOpenGivesAnEmptyDatabaseOfItsOwn(t *testing.T) {
	ctx := context.Background()
	count := func(s *clickhouse.Server, sql string) (n uint64) {
		t.Helper()
		if err := s.Conn().QueryRow(ctx, sql).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	outer := clickhousetest.Open(t)
	var name string
	t.Run("inner", func(t *testing.T) {
		inner := clickhousetest.Open(t)
		name = inner.Database()
		if err := inner.Conn().Exec(ctx, "CREATE TABLE t (n UInt8) ENGINE = MergeTree ORDER BY n"); err != nil {
			t.Fatal(err)
		}
		if n := count(inner, "SELECT count() FROM system.tables WHERE database = currentDatabase()"); n != 1 {
			t.Errorf("inner database has %d tables, want 1", n)
		}
		if n := count(outer, "SELECT count() FROM system.tables WHERE database = currentDatabase()"); n != 0 {
			t.Errorf("outer database has %d tables, want 0", n)
		}
	})
	if n := count(outer, "SELECT count() FROM system.databases WHERE name = '"+name+"'"); n != 0 {
		t.Errorf("database %s still exists", name)
	}
}
