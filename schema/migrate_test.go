package schema_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/runlens/runlens/olap/clickhouse"
	"github.com/runlens/runlens/olap/clickhouse/clickhousetest"

	"github.com/runlens/runlens/schema"
)

func open(t *testing.T) (*clickhouse.Server, *sql.DB) {
	t.Helper()
	store := clickhousetest.Open(t)
	db, err := store.DB()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return store, db
}

// migrated is a store of this binary.
func migrated(t *testing.T) (*clickhouse.Server, *sql.DB) {
	t.Helper()
	store, db := open(t)
	if err := schema.Own.Up(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	return store, db
}

func tables(t *testing.T, db *sql.DB) int {
	t.Helper()
	var n int
	if err := db.QueryRow("SELECT toInt64(count()) FROM system.tables WHERE database = currentDatabase() AND " +
		"name NOT IN ('schema_migrations', 'schema_versions')").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestUpDownUp(t *testing.T) {
	ctx := context.Background()
	_, db := open(t)
	state, err := schema.Own.Status(ctx, db)
	if err != nil || state.Version != 0 || state.Current() {
		t.Fatalf("an empty store is at %+v, %v", state, err)
	}
	for range 2 { // the second time changes nothing
		if err := schema.Own.Up(ctx, db); err != nil {
			t.Fatal(err)
		}
	}
	if state, err = schema.Own.Status(ctx, db); err != nil || !state.Current() {
		t.Fatalf("after up the store is at %+v, %v", state, err)
	}
	want := tables(t, db)
	if want != storeTables {
		t.Errorf("%d tables after up, want %d", want, storeTables)
	}
	if err := schema.Own.Down(ctx, db, 1); err != nil {
		t.Fatal(err)
	}
	if stepped, err := schema.Own.Status(ctx, db); err != nil || stepped.Version >= state.Latest || stepped.Current() {
		t.Errorf("after one step down the store is at %+v, %v", stepped, err)
	}
	if err := schema.Own.Down(ctx, db, 1000); err != nil {
		t.Fatal(err)
	}
	if got := tables(t, db); got != 0 {
		t.Errorf("%d tables after all steps down, want 0", got)
	}
	if err := schema.Own.Up(ctx, db); err != nil {
		t.Fatal(err)
	}
	if got := tables(t, db); got != want {
		t.Errorf("%d tables after up again, want %d", got, want)
	}
}

// Many servers may start at once; each has a golang-migrate of its own, which does not lock the others out.
func TestUpAtTheSameTime(t *testing.T) {
	ctx := context.Background()
	store, db := open(t)
	var group sync.WaitGroup
	failures := make(chan error, 16)
	for range cap(failures) {
		group.Go(func() {
			db, err := store.DB()
			if err == nil {
				defer db.Close()
				err = schema.Own.Up(ctx, db)
			}
			failures <- err
		})
	}
	group.Wait()
	close(failures)
	for err := range failures {
		if err != nil {
			t.Error(err)
		}
	}
	if state, err := schema.Own.Status(ctx, db); err != nil || !state.Current() {
		t.Errorf("the store is at %+v, %v", state, err)
	}
}

// storeTables is the number of tables, views among them, that all migrations make.
const storeTables = 26

// A store that was made before the baseline is refused, and left as it is.
func TestUpRefusesAnOlderStore(t *testing.T) {
	ctx := context.Background()
	_, db := open(t)
	if err := schema.Own.Down(ctx, db, 1); err != nil { // makes the tables of versions
		t.Fatal(err)
	}
	execute(t, db, "INSERT INTO schema_migrations SELECT 53, 0, toUnixTimestamp64Nano(now64(9))")
	if err := schema.Own.Up(ctx, db); !errors.Is(err, schema.ErrOlderStore) {
		t.Errorf("up: got %v, want ErrOlderStore", err)
	}
	if err := schema.Own.Down(ctx, db, 1); !errors.Is(err, schema.ErrOlderStore) {
		t.Errorf("down: got %v, want ErrOlderStore", err)
	}
	if got := tables(t, db); got != 0 {
		t.Errorf("%d tables, want 0", got)
	}
}

// Up relies on every statement being idempotent.
func TestMigrationsAreIdempotent(t *testing.T) {
	files, err := filepath.Glob("migrations/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, statement := range strings.Split(string(content), ";\n") {
			once := strings.Count(statement, " IF NOT EXISTS ") + strings.Count(statement, " IF EXISTS ") +
				strings.Count(statement, " MODIFY SETTING ") + strings.Count(statement, " RESET SETTING ")
			if once != 1 {
				t.Errorf("%s: statement %d is not idempotent, or more than one", file, i+1)
			}
		}
	}
}

// Where a version cannot be recorded, as on a full disk, Up and Down say so at once, every time: no try keeps a
// connection.
func TestVersionsThatCannotBeRecorded(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute) // to fail, instead of waiting for ever
	defer cancel()
	_, db := open(t)
	if err := schema.Own.Down(ctx, db, 1); err != nil { // makes the tables of versions
		t.Fatal(err)
	}
	execute(t, db, "ALTER TABLE schema_migrations ADD CONSTRAINT full CHECK version < 100")
	const connections = 32
	for range connections + 8 {
		err := schema.Own.Up(ctx, db)
		if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "record the version") {
			t.Fatalf("up ended with %v", err)
		}
	}
	if stats := db.Stats(); stats.InUse != 0 {
		t.Errorf("%d connections are kept", stats.InUse)
	}
	state, err := schema.Own.Status(ctx, db)
	if err != nil || state.Version != 0 || state.Dirty {
		t.Errorf("the store is at %+v, %v", state, err)
	}
	execute(t, db, "ALTER TABLE schema_migrations DROP CONSTRAINT full")
	if err := schema.Own.Up(ctx, db); err != nil {
		t.Error(err)
	}
}

// A context that ends stops a migration in the middle of a statement; the next start goes on there. This is the one
// test that waits for a time bound of the code, 5 s.
func TestUpEndsWithItsContext(t *testing.T) {
	_, db := open(t)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- schema.Own.Up(ctx, db) }()
	for {
		if state, err := schema.Own.Status(context.Background(), db); err != nil || state.Current() {
			t.Fatalf("it ended before it was stopped: %+v, %v", state, err)
		} else if state.Dirty {
			break
		}
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("stopped with %v", err)
	}
	if err := schema.Own.Up(context.Background(), db); err != nil {
		t.Error(err)
	}
	if got := tables(t, db); got != storeTables {
		t.Errorf("%d tables, want %d", got, storeTables)
	}
}
