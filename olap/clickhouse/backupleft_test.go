package clickhouse_test

import (
	"context"
	"io/fs"
	"path/filepath"
	"testing"
	"time"
)

// Of a backup that is interrupted nothing stays in the data directory, whatever the engine has still to write of it.
func TestAnInterruptedBackupLeavesNothing(t *testing.T) {
	dir := dataDir(t)
	s := open(t, config(dir))
	conn := s.Conn()
	for _, statement := range []string{
		"CREATE TABLE many (n UInt64, t String) ENGINE = MergeTree PARTITION BY n % 90 ORDER BY n",
		"INSERT INTO many SELECT number, randomPrintableASCII(400) FROM numbers(300000)",
	} {
		if err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for n := uint64(0); n == 0; {
			if err := conn.QueryRow(t.Context(), "SELECT count() FROM system.backups").Scan(&n); err != nil {
				t.Error(err)
				break
			}
		}
		cancel()
	}()
	err := s.Backup(ctx, filepath.Join(t.TempDir(), "backup"), func(destination string) string {
		// It would take a minute, so that it cannot end before it is interrupted.
		return "BACKUP TABLE many TO " + destination + " SETTINGS max_backup_bandwidth = 2000000"
	})
	const status = "SELECT toString(any(status)) FROM system.backups"
	for ended := "CREATING_BACKUP"; ended == "CREATING_BACKUP"; time.Sleep(10 * time.Millisecond) {
		if err := conn.QueryRow(t.Context(), status).Scan(&ended); err != nil {
			t.Fatal(err)
		}
	}
	files := 0
	filepath.WalkDir(filepath.Join(dir, "engine", "backups"), func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files++
		}
		return nil
	})
	if err == nil || files > 0 {
		t.Errorf("%v; %d files stay of a backup that was interrupted", err, files)
	}
}
