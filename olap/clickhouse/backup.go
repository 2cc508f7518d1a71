package clickhouse

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// backupPoll is how often it is looked whether a backup has ended.
const backupPoll = 50 * time.Millisecond

// ErrNotEmbedded is the error of what works with files of the embedded engine, on a server that runs elsewhere.
var ErrNotEmbedded = errors.New("this works with the embedded engine; deploy/backup.md has the statements for a " +
	"ClickHouse server")

// Backup has the embedded engine write a backup into dir, which it makes, while others use the engine. statement is the
// SQL for a destination. The engine can write below its own folder only, so the backup is made there and then moved.
// It is on the disk when Backup returns.
func (s *Server) Backup(ctx context.Context, dir string, statement func(destination string) string) error {
	return s.exchange(ctx, func(inside string) error {
		if err := s.await(ctx, statement(file(inside))); err != nil {
			return err
		}
		return place(inside, dir)
	})
}

// Restore has the embedded engine restore a backup from dir. statement is the SQL for a source.
func (s *Server) Restore(ctx context.Context, dir string, statement func(source string) string) error {
	return s.exchange(ctx, func(inside string) error {
		if err := place(dir, inside); err != nil {
			return err
		}
		return s.await(ctx, statement(file(inside)))
	})
}

// Check has ClickHouse read all rows of tables and compare them with their checksums, which a restore does not. It
// fails where a part is damaged. Partitions are checked one by one, since a whole table may take longer than a client
// waits for an answer.
func (s *Server) Check(ctx context.Context, tables []string) error {
	var partitions []struct {
		Table string `ch:"table"`
		ID    string `ch:"partition_id"`
	}
	if err := s.conn.Select(ctx, &partitions, "SELECT DISTINCT table, partition_id FROM system.parts"+
		" WHERE active AND database = currentDatabase() AND table IN ? ORDER BY ALL", tables); err != nil {
		return err
	}
	for _, p := range partitions {
		var parts []struct {
			Path    string `ch:"part_path"`
			Passed  bool   `ch:"is_passed"`
			Message string `ch:"message"`
		}
		check := "CHECK TABLE " + quoteIdentifier(p.Table) + " PARTITION ID " + quoted(p.ID)
		if err := s.conn.Select(ctx, &parts, check); err != nil {
			return err
		}
		for _, part := range parts {
			if !part.Passed {
				s.engine.logger.Error("a part of a table is damaged", "part", part.Path, "cause", beginning(part.Message))
				return fmt.Errorf("the table %s is damaged", p.Table)
			}
		}
	}
	return nil
}

// await has ClickHouse do a backup or restore in the background, since it may take longer than a client waits for the
// answer of one statement, and returns when it has ended.
func (s *Server) await(ctx context.Context, statement string) error {
	var id, status, failure string
	if err := s.conn.QueryRow(ctx, statement+" ASYNC").Scan(&id, &status); err != nil {
		return err
	}
	tick := time.NewTicker(backupPoll)
	defer tick.Stop()
	for {
		err := s.conn.QueryRow(ctx, "SELECT toString(status), error FROM system.backups WHERE id = ?", id).
			Scan(&status, &failure)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return errors.New("the engine ended meanwhile")
		case err != nil:
			return err
		case status == "BACKUP_CREATED" || status == "RESTORED":
			return nil
		case status != "CREATING_BACKUP" && status != "RESTORING":
			s.engine.logger.Error("ClickHouse could not do it", "status", status, "cause", beginning(failure))
			err := errors.New("ClickHouse could not do it; the log says why")
			// It takes its own empty file for that of another backup.
			if diskFull(s.engine.layout.dir) {
				err = syscall.ENOSPC
			}
			return explain(err, failure)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// exchange has do use a path at which the engine can write a folder. It is gone afterwards.
func (s *Server) exchange(ctx context.Context, do func(inside string) error) error {
	if s.engine == nil {
		return ErrNotEmbedded
	}
	lock, err := lockShared(ctx, s.engine.layout.backupsLock())
	if err != nil {
		return err
	}
	defer lock.release()
	all := s.engine.layout.backups()
	if err := os.MkdirAll(all, 0o700); err != nil {
		return err
	}
	name := randomHex(16)
	inside := filepath.Join(all, name)
	if err := do(inside); err != nil {
		return errors.Join(err, s.takeAway(inside, name))
	}
	return os.RemoveAll(inside)
}

// ClearBackups removes from the folder of the embedded engine what is left of backups whose process was killed. It does
// nothing while somebody makes or restores a backup.
func (s *Server) ClearBackups() error {
	if s.engine == nil {
		return nil
	}
	lock, err := tryLockExclusive(s.engine.layout.backupsLock())
	if lock == nil || err != nil {
		return err
	}
	defer lock.release()
	return s.takeAway(s.engine.layout.backups(), "")
}

// endPatience is how long a backup that nobody waits for may take to end once its files are gone.
const endPatience = time.Minute

// takeAway removes a folder with the files of backups, those of a name, or all. The engine goes on with one that nobody
// waits for any longer. Without its files it fails, and what it writes until then is removed in the end.
func (s *Server) takeAway(folder, name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), endPatience)
	defer cancel()
	for {
		var running uint64
		err := s.conn.QueryRow(ctx, "SELECT count() FROM system.backups WHERE position(name, ?) > 0"+
			" AND toString(status) IN ('CREATING_BACKUP', 'RESTORING')", name).Scan(&running)
		removed := os.RemoveAll(folder) // it may be filled at the same time
		if err != nil || running == 0 {
			return errors.Join(err, removed)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(backupPoll):
		}
	}
}

// file is the SQL of a backup at a path.
func file(path string) string {
	return "File(" + quoted(path) + ")"
}

// place puts the files of a folder into another one, which it makes, and syncs them. On one file system they are
// linked, else copied: nobody changes a file of a backup.
func place(from, to string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, name)
		switch {
		case entry.IsDir():
			err = os.MkdirAll(target, 0o700)
		case !entry.Type().IsRegular():
			err = fmt.Errorf("%s is no file", path)
		case os.Link(path, target) != nil:
			err = copyFile(path, target)
		}
		if err == nil {
			err = syncPath(target)
		}
		return err
	})
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// InUse reports whether processes use the embedded engine of a data directory, "" for the default one. It waits for an
// engine that is ending.
func InUse(ctx context.Context, dataDir string) (bool, error) {
	config, err := Config{DataDir: dataDir}.withDefaults()
	if err != nil {
		return false, err
	}
	path := layoutOf(config.DataDir).usersLock()
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	shared, err := lockShared(ctx, path)
	if err != nil {
		return false, err
	}
	shared.release()
	alone, err := tryLockExclusive(path)
	if alone != nil {
		alone.release()
	}
	return alone == nil, err
}
