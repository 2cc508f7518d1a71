// Package checkpoint remembers in the store how far copying has come. A checkpoint lives where the
// rows are, so that a new store has none and is copied from the beginning.
package checkpoint

import (
	"context"
	databasesql "database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/go-json-experiment/json"

	"github.com/runlens/runlens/ingest/write"
	"github.com/runlens/runlens/schema"
	"github.com/runlens/runlens/schema/sql"
)

var ofSources = sql.AllOrganizations("a checkpoint is of a source, whose rows may be of several of them")

// A Log has checkpoints by name. It is not safe for concurrent use.
type Log struct {
	// Epoch of what is saved, less than 1 << 32: what is saved in a later one counts more, in whatever order it is stored.
	Epoch     uint64
	conn      driver.Conn
	retry     write.Retry
	revisions map[string]uint64 // read last, or saved; the upper half is that of an Epoch
}

// NewLog returns the log of the store of conn, in the epoch 0. It retries what fails for a reason that passes.
func NewLog(conn driver.Conn, retry write.Retry) *Log {
	return &Log{conn: conn, retry: retry, revisions: map[string]uint64{}}
}

// Load reads the newest checkpoint of a name into position, as JSON, and returns when it was saved. A name without one,
// or whose checkpoint was cleared, leaves position alone and reports false.
func (l *Log) Load(ctx context.Context, name string, position any) (savedAt time.Time, found bool, err error) {
	text, savedAt, err := l.newest(ctx, name)
	if err != nil || text == "" {
		return time.Time{}, false, err
	}
	if err := json.Unmarshal([]byte(text), position); err != nil {
		return time.Time{}, false, fmt.Errorf("read the checkpoint %q: %w", name, err)
	}
	return savedAt, true, nil
}

// newest reads the newest checkpoint of a name and takes note of its revision. The text is empty where there is none,
// or where it was cleared.
func (l *Log) newest(ctx context.Context, name string) (text string, savedAt time.Time, err error) {
	var revision uint64
	err = l.retry.Do(ctx, "read the checkpoint", func() error {
		newest := sql.Select{
			Columns: []string{"position", "revision", "saved_at"}, From: ofSources(schema.TableCheckpoints),
			Where: []string{"name = {name:String}"}, Order: []string{"revision DESC", "saved_at DESC"}, Limit: "1",
		}
		return l.conn.QueryRow(ctx, newest.String(), clickhouse.Named("name", name)).Scan(&text, &revision, &savedAt)
	})
	if errors.Is(err, databasesql.ErrNoRows) {
		return "", time.Time{}, nil
	}
	if err != nil {
		return "", time.Time{}, fmt.Errorf("read the checkpoint: %w", err)
	}
	l.revisions[name] = max(l.revisions[name], revision)
	return text, savedAt, nil
}

// Names returns the names with a prefix that have a checkpoint which was not cleared.
func (l *Log) Names(ctx context.Context, prefix string) (names []string, err error) {
	err = l.retry.Do(ctx, "read the checkpoints", func() error {
		names, err = Names(ctx, l.conn, prefix)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the checkpoints: %w", err)
	}
	return names, nil
}

// Names is that of a Log, without another try.
func Names(ctx context.Context, conn driver.Conn, prefix string) (names []string, err error) {
	kept := sql.Select{
		Columns: []string{"name"}, From: ofSources(schema.TableCheckpoints),
		Where: []string{"startsWith(name, {prefix:String})"}, Group: []string{"name"},
		Having: "argMax(position, (revision, saved_at)) != ''",
	}
	list := sql.Select{Columns: []string{"groupArray(name)"}, From: sql.Query(kept)}
	err = conn.QueryRow(ctx, list.String(), clickhouse.Named("prefix", prefix)).Scan(&names)
	return names, err
}

// Save stores a checkpoint, whose order among others of the name does not depend on any clock. Whoever
// saves has seen ClickHouse acknowledge all that lies before position.
func (l *Log) Save(ctx context.Context, name string, position any) error {
	text, err := json.Marshal(position)
	if err != nil {
		return err
	}
	return l.save(ctx, name, string(text))
}

// Clear takes the newest checkpoint of a name away, whatever it contains.
func (l *Log) Clear(ctx context.Context, name string) error {
	if _, _, err := l.newest(ctx, name); err != nil {
		return err
	}
	return l.save(ctx, name, "")
}

func (l *Log) save(ctx context.Context, name, text string) error {
	revision := max(l.revisions[name], l.Epoch<<32) + 1
	err := l.retry.Do(ctx, "save the checkpoint", func() error {
		batch, err := l.conn.PrepareBatch(ctx, "INSERT INTO "+schema.TableCheckpoints+" (name, position, revision)")
		if err != nil {
			return err
		}
		if err := batch.Append(name, text, revision); err != nil {
			return err
		}
		return batch.Send()
	})
	if err != nil {
		return fmt.Errorf("save the checkpoint: %w", err)
	}
	l.revisions[name] = revision
	return nil
}
