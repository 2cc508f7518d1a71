package schema_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
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

func tables(t *testing.T, db *sql.DB) int {
	t.Helper()
	var n int
	if err := db.QueryRow("SELECT toInt64(count()) FROM system.tables WHERE database = currentDatabase() AND name != 'schema_migrations'").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestUpDownUp(t *testing.T) {
	ctx := context.Background()
	_, db := open(t)
	state, err := schema.Status(ctx, db)
	if err != nil || state.Version != 0 || state.Current() {
		t.Fatalf("an empty store is at %+v, %v", state, err)
	}
	for range 2 { // the second time changes nothing
		if err := schema.Up(ctx, db); err != nil {
			t.Fatal(err)
		}
	}
	if state, err = schema.Status(ctx, db); err != nil || !state.Current() {
		t.Fatalf("after up the store is at %+v, %v", state, err)
	}
	want := tables(t, db)
	if want != storeTables {
		t.Errorf("%d tables after up, want %d", want, storeTables)
	}
	if err := schema.Down(ctx, db, 1); err != nil {
		t.Fatal(err)
	}
	if stepped, err := schema.Status(ctx, db); err != nil || stepped.Version >= state.Latest || stepped.Current() {
		t.Errorf("after one step down the store is at %+v, %v", stepped, err)
	}
	if err := schema.Down(ctx, db, 1000); err != nil {
		t.Fatal(err)
	}
	if got := tables(t, db); got != 0 {
		t.Errorf("%d tables after all steps down, want 0", got)
	}
	if err := schema.Up(ctx, db); err != nil {
		t.Fatal(err)
	}
	if got := tables(t, db); got != want {
		t.Errorf("%d tables after up again, want %d", got, want)
	}
}

// Many servers may start at once; each has a golang-migrate of its own, which does not lock the others out.
func TestUpAtTheSameTime(t *testing.T) {
	ctx := context.Background()
	store, _ := open(t)
	var group sync.WaitGroup
	failures := make(chan error, 16)
	for range cap(failures) {
		group.Go(func() {
			db, err := store.DB()
			if err == nil {
				defer db.Close()
				err = schema.Up(ctx, db)
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
	db, err := store.DB()
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if state, err := schema.Status(ctx, db); err != nil || !state.Current() {
		t.Errorf("the store is at %+v, %v", state, err)
	}
}

// storeTables is the number of tables that all migrations make.
const storeTables = 20

// migrationsFrom is the number of migrations from version on.
func migrationsFrom(t *testing.T, version int) (n int) {
	t.Helper()
	files, err := filepath.Glob("migrations/*.up.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if filepath.Base(file) >= fmt.Sprintf("%04d", version) {
			n++
		}
	}
	return n
}

// A process that dies between the two marks of a migration leaves the store dirty; the next start
// runs that migration again. This is the one test that waits for a time bound of the code, 5 s.
func TestUpAfterAnInterruption(t *testing.T) {
	ctx := context.Background()
	for _, version := range []int{1, 4, 52} { // 51 does not exist
		_, db := open(t)
		if err := schema.Up(ctx, db); err != nil {
			t.Fatal(err)
		}
		if err := schema.Down(ctx, db, migrationsFrom(t, version)); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec("INSERT INTO schema_migrations SELECT $1, 1, toUnixTimestamp64Nano(now64(9))", version); err != nil {
			t.Fatal(err)
		}
		if err := schema.Up(ctx, db); err != nil {
			t.Fatal(err)
		}
		if state, err := schema.Status(ctx, db); err != nil || !state.Current() {
			t.Errorf("interrupted at %d: the store is at %+v, %v", version, state, err)
		}
		if got := tables(t, db); got != storeTables {
			t.Errorf("interrupted at %d: %d tables, want %d", version, got, storeTables)
		}
	}
}

func TestUpRefusesANewerStore(t *testing.T) {
	ctx := context.Background()
	_, db := open(t)
	if err := schema.Up(ctx, db); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("INSERT INTO schema_migrations SELECT 99, 0, toUnixTimestamp64Nano(now64(9))"); err != nil {
		t.Fatal(err)
	}
	if err := schema.Up(ctx, db); !errors.Is(err, schema.ErrNewerStore) {
		t.Errorf("got %v, want ErrNewerStore", err)
	}
}

// Up relies on every migration being one idempotent statement.
func TestMigrationsAreSingleIdempotentStatements(t *testing.T) {
	err := fs.WalkDir(os.DirFS("migrations"), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join("migrations", path))
		if err != nil {
			return err
		}
		sql := string(content)
		if strings.Contains(sql, ";") {
			t.Errorf("%s: has a semicolon, and only the first statement would run", path)
		}
		// Filling a column twice gives the same values, and the grammar has no IF EXISTS for it.
		if !strings.Contains(sql, "IF NOT EXISTS") && !strings.Contains(sql, "IF EXISTS") && !strings.Contains(sql, "MATERIALIZE COLUMN") {
			t.Errorf("%s: is not idempotent", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Where a version cannot be recorded, as on a full disk, Up and Down say so at once, every time: no try keeps a
// connection.
func TestVersionsThatCannotBeRecorded(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute) // to fail, instead of waiting for ever
	defer cancel()
	_, db := open(t)
	if _, err := schema.Status(ctx, db); err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(ctx, "ALTER TABLE schema_migrations ADD CONSTRAINT full CHECK version < 3"); err != nil {
		t.Fatal(err)
	}
	const connections = 32
	for range connections + 8 {
		if err := schema.Up(ctx, db); err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "record the version") {
			t.Fatalf("up ended with %v", err)
		}
	}
	if stats := db.Stats(); stats.InUse != 0 {
		t.Errorf("%d connections are kept", stats.InUse)
	}
	state, err := schema.Status(ctx, db)
	if err != nil || state.Version != 2 || state.Dirty {
		t.Errorf("the store is at %+v, %v", state, err)
	}
	if _, err := db.ExecContext(ctx, "ALTER TABLE schema_migrations DROP CONSTRAINT full"); err != nil {
		t.Fatal(err)
	}
	if err := schema.Up(ctx, db); err != nil {
		t.Error(err)
	}
}

// A context that ends stops a migration in the middle of a statement; the next start goes on there.
func TestUpEndsWithItsContext(t *testing.T) {
	_, db := open(t)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- schema.Up(ctx, db) }()
	for {
		if state, err := schema.Status(context.Background(), db); err != nil || state.Current() {
			t.Fatalf("it ended before it was stopped: %+v, %v", state, err)
		} else if state.Version >= 2 {
			break
		}
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("stopped with %v", err)
	}
	if err := schema.Up(context.Background(), db); err != nil {
		t.Error(err)
	}
	if got := tables(t, db); got != storeTables {
		t.Errorf("%d tables, want %d", got, storeTables)
	}
}
