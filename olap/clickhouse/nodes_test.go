package clickhouse_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/runlens/runlens/olap/clickhouse"
	"github.com/runlens/runlens/olap/olaptest/logtest"
)

const createRuns = "CREATE TABLE %s.runs UUID '%s' (n UInt64) ENGINE = MergeTree ORDER BY n"

// store makes a database with a table of the UUID on each node, and returns its name.
func store(t *testing.T, tables map[*node]string) (database string) {
	t.Helper()
	database = fmt.Sprintf("nodes_%d", stores)
	stores++
	for n, table := range tables {
		n.Do(t, "CREATE DATABASE "+database, fmt.Sprintf(createRuns, database, table))
		t.Cleanup(func() { n.Do(t, "DROP DATABASE "+database+" SYNC") })
	}
	return database
}

var stores int

const (
	tableA = "aaaaaaaa-0000-4000-8000-000000000001"
	tableB = "bbbbbbbb-0000-4000-8000-000000000002"
)

// through opens the database through the balancer.
func through(t *testing.T, b *balancer, database string) (*clickhouse.Server, *logtest.Buffer, error) {
	t.Helper()
	log := &logtest.Buffer{}
	s, err := clickhouse.Open(context.Background(), clickhouse.Config{
		URL: b.url(database), Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	if err == nil {
		t.Cleanup(func() { s.Close() })
	}
	return s, log, err
}

// expectBothNamed wants one line with the UUIDs of both tables, and what to do.
func expectBothNamed(t *testing.T, line string) {
	t.Helper()
	if strings.Contains(line, "\n") {
		t.Errorf("more than one line: %s", line)
	}
	for _, part := range []string{tableA, tableB, "give the address of one node"} {
		if !strings.Contains(line, part) {
			t.Errorf("%q is not in %q", part, line)
		}
	}
}

func TestNodesOfTheirOwnAreRefusedAtTheStart(t *testing.T) {
	left, right := twoNodes(t)
	database := store(t, map[*node]string{left: tableA, right: tableB})
	behindEach(t, func(t *testing.T, b *balancer) {
		b.reach(left, right)
		_, log, err := through(t, b, database)
		if !errors.Is(err, clickhouse.ErrOtherNode) {
			t.Fatalf("the start ends with %v", err)
		}
		expectBothNamed(t, err.Error())
		if log.String() != "" {
			t.Errorf("the error is logged as well: %s", log)
		}
	})
}

// A start takes more statements at once than a user may have of ClickHouse, and waits for its turn.
func TestStartOfALimitedUser(t *testing.T) {
	left, _ := twoNodes(t)
	left.Do(t, "CREATE DATABASE IF NOT EXISTS limited")
	for _, scheme := range []string{"http", "clickhouse"} {
		for range 5 {
			store, err := clickhouse.Open(t.Context(), clickhouse.Config{
				Logger: slog.New(slog.DiscardHandler), Tables: []string{"runs"},
				URL: fmt.Sprintf("%s://limited:x@%s/limited", scheme, left.Addr(scheme)),
			})
			if err != nil {
				t.Fatalf("%s: %v", scheme, err)
			}
			store.Close()
		}
	}
}

// A database that only one node has is known to be another one by the other's lack of it.
func TestNodesWithoutTablesAreRefusedAtTheStart(t *testing.T) {
	left, right := twoNodes(t)
	behindEach(t, func(t *testing.T, b *balancer) {
		database := store(t, nil)
		for _, n := range []*node{left, right} {
			n.Do(t, "CREATE DATABASE "+database)
			t.Cleanup(func() { n.Do(t, "DROP DATABASE "+database+" SYNC") })
		}
		b.reach(left, right)
		if _, _, err := through(t, b, database); !errors.Is(err, clickhouse.ErrOtherNode) {
			t.Fatalf("the start ends with %v", err)
		}
	})
}

func TestNodesOfTheirOwnAreRefusedWhileRunning(t *testing.T) {
	left, right := twoNodes(t)
	behindEach(t, func(t *testing.T, b *balancer) {
		database := store(t, map[*node]string{left: tableA, right: tableB})
		right.Do(t, "INSERT INTO "+database+".runs SELECT 1000 + number FROM numbers(500)")
		b.reach(left)
		s, log, err := through(t, b, database)
		if err != nil {
			t.Fatal(err)
		}
		if log.String() != "" {
			t.Errorf("logged at the start: %s", log)
		}

		b.reach(right, left, left) // not in step with a statement's connections
		var stored, answers, refused int
		for i := range 24 {
			b.turnAway()
			err := s.Conn().Exec(context.Background(), fmt.Sprintf("INSERT INTO runs VALUES (%d)", i))
			if err == nil {
				stored++
			} else if errors.Is(err, clickhouse.ErrOtherNode) {
				refused++
			}
			b.turnAway()
			var n, others uint64
			err = s.Conn().QueryRow(context.Background(), "SELECT count(), countIf(n >= 1000) FROM runs").Scan(&n, &others)
			if err == nil {
				answers++
				if others > 0 || n < uint64(stored) {
					t.Errorf("an answer of another node: %d rows, %d of them the other's, of %d stored", n, others, stored)
				}
			} else if errors.Is(err, clickhouse.ErrOtherNode) {
				refused++
			}
		}
		t.Logf("%d stored, %d answers, %d refused", stored, answers, refused)
		if refused == 0 || stored == 0 {
			t.Errorf("%d stored, %d answers, %d refused", stored, answers, refused)
		}
		if rows := value[uint64](t, left, "SELECT count() FROM "+database+".runs"); rows != uint64(stored) {
			t.Errorf("%d inserts were acknowledged, %d are stored", stored, rows)
		}
		if lines := strings.Count(log.String(), "\n"); lines != 1 {
			t.Errorf("%d log lines, want 1: %s", lines, log)
		}
		expectBothNamed(t, strings.TrimSpace(log.String()))

		b.reach(left)
		eventually(t, "the server works with one node again", func() bool { return works(s) })
	})
}

// A migration uses connections of its own.
func TestMigrationRefusesAnotherNode(t *testing.T) {
	left, right := twoNodes(t)
	database := store(t, map[*node]string{left: tableA, right: tableB})
	behindEach(t, func(t *testing.T, b *balancer) {
		b.reach(left)
		s, _, err := through(t, b, database)
		if err != nil {
			t.Fatal(err)
		}
		db, err := s.DB()
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if err := db.Ping(); err != nil {
			t.Fatal(err)
		}
		b.reach(right)
		b.cut()
		for range 5 {
			_, err := db.Exec("CREATE TABLE IF NOT EXISTS migrated (n UInt8) ENGINE = MergeTree ORDER BY n")
			if err == nil {
				t.Error("another node is migrated")
			}
			if errors.Is(err, clickhouse.ErrOtherNode) {
				return
			}
		}
		t.Error("never refused")
	})
}

func TestNodesThatShareTheTable(t *testing.T) {
	left, right := twoNodes(t)
	database := store(t, map[*node]string{left: tableA, right: tableA})
	behindEach(t, func(t *testing.T, b *balancer) {
		b.reach(left, right)
		s, log, err := through(t, b, database)
		if err != nil {
			t.Fatal(err)
		}
		for range 6 {
			if _, err := s.Version(context.Background()); err != nil {
				t.Error(err)
			}
		}
		if log.String() != "" {
			t.Errorf("logged: %s", log)
		}
	})
}

func TestOneNodeBehindABalancerMayRestart(t *testing.T) {
	left, _ := twoNodes(t)
	database := store(t, map[*node]string{left: tableA})
	behindEach(t, func(t *testing.T, b *balancer) {
		b.reach(left)
		s, log, err := through(t, b, database)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Conn().Exec(context.Background(), "INSERT INTO runs VALUES (1)"); err != nil {
			t.Fatal(err)
		}
		left.Stop()
		if err := left.Start(); err != nil {
			t.Fatal(err)
		}
		left.Answers(t)
		eventually(t, "the server works after the restart of its node", func() bool { return works(s) })
		if log.String() != "" {
			t.Errorf("logged: %s", log)
		}
	})
}

// A restarted node that has lost its tables and got others is another one, whatever its name.
func TestNodeThatComesBackWithOtherTables(t *testing.T) {
	left, _ := twoNodes(t)
	behindEach(t, func(t *testing.T, b *balancer) {
		database := store(t, map[*node]string{left: tableA})
		b.reach(left)
		s, _, err := through(t, b, database)
		if err != nil {
			t.Fatal(err)
		}
		left.Do(t, "DROP DATABASE "+database+" SYNC", "CREATE DATABASE "+database, fmt.Sprintf(createRuns, database, tableB))
		eventually(t, "the other table is refused", func() bool {
			b.cut()
			_, err := s.Version(context.Background())
			return errors.Is(err, clickhouse.ErrOtherNode)
		})
	})
}
