// Package transfer copies a whole store into another one that is empty: every row as it is stored, with its stamps, so
// that answers, keys, cursors and checkpoints hold there. What is derived is left to the other store.
//
//  1. A checkpoint in the other store says whose rows it is about to get. Without it, a store with rows is refused.
//     With it, everything else refuses the store (Whole).
//  2. Each partition of each table is compared. One that differs, as after an interruption, is dropped and sent again,
//     and then compared again.
//  3. Partitions that are not here, as those whose time was over since an interruption, are dropped. Nobody may have
//     stored anything here meanwhile.
//  4. Done takes the checkpoint away.
package transfer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/ingest/checkpoint"
	"github.com/runlens/runlens/ingest/write"
	"github.com/runlens/runlens/schema"
	"github.com/runlens/runlens/schema/sql"
)

var (
	// ErrUsed is the error of a store that has rows of others.
	ErrUsed = errors.New("the store has rows already; name an empty database")
	// ErrMoved is ErrUsed for a store into which a copy of this one has ended.
	ErrMoved = errors.New("the store was moved there before, to the end: nothing is left to do but to start servers and " +
		"workers with RUNLENS_CLICKHOUSE_URL; what was stored here since then is not there")
	// ErrUnfinished is the error of a store in which a copy did not end.
	ErrUnfinished = errors.New("'runlens engine move' into this store began and has not ended, so that it lacks rows: " +
		"run that again to its end, or drop the database")
	// ErrUnrestored is the error of a store in which a restore did not end.
	ErrUnrestored = errors.New("'runlens engine restore' into this data directory began and has not ended, so that it " +
		"lacks records: remove the data directory and run that again")
	// ErrBusy is the error where others use the store that is copied.
	ErrBusy = errors.New("something was stored meanwhile: end every server, worker and command that uses the data " +
		"directory, and run it again")
	// ErrPurging is the error of a store in which a purge did not end.
	ErrPurging = errors.New("a purge was interrupted: run it again before")
)

// A Copy is a copy under way. Both stores have the same migrations.
type Copy struct {
	From, To driver.Conn
	// Send stores in To the rows that a SELECT has in From; insert is INSERT INTO without a format.
	Send   func(ctx context.Context, query, insert string) error
	Logger *slog.Logger

	marks   *checkpoint.Log
	inserts uint64 // that From had ended at the beginning
}

var (
	tables = slices.Concat(schema.BackupLists, schema.BackupRecords,
		// Last: a worker that finds its checkpoint finds all that is before it.
		[]string{schema.TableReplacements, schema.TableCheckpoints})
	whole = sql.AllOrganizations("a store is copied with all that it has")
)

// plain are the engines of tables whose rows don't merge. The other store's engine is of the same kind.
var plain = map[string]bool{"MergeTree": true, "ReplicatedMergeTree": true, "SharedMergeTree": true}

const (
	// markPrefix begins the name of the checkpoint that says whose rows a store is about to get.
	markPrefix = "transfer:"
	// restoreMark is that of a backup.
	restoreMark = markPrefix + "restore"
)

// A partition is one of a table, by ClickHouse's id.
type partition struct {
	Table  string `ch:"table"`
	ID     string `ch:"partition_id"`
	Engine string `ch:"engine"` // of the table, here
	Rows   uint64 `ch:"rows"`
}

// Run copies what To lacks and returns how many rows it has then. Errors that say what to do are ErrUsed, ErrMoved,
// ErrUnfinished, ErrUnrestored, ErrBusy and ErrPurging; after any other one, Run again goes on.
func (c *Copy) Run(ctx context.Context) (rows uint64, err error) {
	if err := c.begin(ctx); err != nil {
		return 0, err
	}
	all, err := partitions(ctx, c.From)
	if err != nil {
		return 0, err
	}
	for i, p := range all {
		if err := c.step(ctx, p); err != nil {
			return 0, fmt.Errorf("copy %s, partition %s: %w", p.Table, p.ID, write.Describe(err))
		}
		rows += p.Rows
		c.Logger.Info("copied", "table", p.Table, "partition", p.ID, "rows", p.Rows, "step", i+1, "of", len(all))
	}
	if err := c.dropOthers(ctx, all); err != nil {
		return 0, err
	}
	now, err := inserts(ctx, c.From)
	if err == nil && now != c.inserts {
		err = ErrBusy
	}
	return rows, err
}

// dropOthers takes out of To what is in none of the partitions.
func (c *Copy) dropOthers(ctx context.Context, all []partition) error {
	there, err := partitions(ctx, c.To)
	if err != nil {
		return err
	}
	for _, p := range there {
		here := slices.ContainsFunc(all, func(q partition) bool { return p.Table == q.Table && p.ID == q.ID })
		if !here && p.Table != schema.TableCheckpoints {
			if err := c.drop(ctx, p); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Copy) drop(ctx context.Context, p partition) error {
	return write.Describe(c.To.Exec(ctx, "ALTER TABLE "+p.Table+" DROP PARTITION ID '"+p.ID+"'"))
}

// Done ends the copy: from now on To is a store like any other.
func (c *Copy) Done(ctx context.Context) error {
	names, err := c.marks.Names(ctx, markPrefix)
	for _, name := range names {
		err = errors.Join(err, c.marks.Clear(ctx, name))
	}
	return err
}

// Restoring says in a store that it is about to get the rows of a backup: until done, Whole refuses it. A restore that
// dies does not go on, as a copy does.
func Restoring(ctx context.Context, conn driver.Conn, logger *slog.Logger) (
	done func(context.Context) error, err error) {
	marks := checkpoint.NewLog(conn, write.Retry{Logger: logger, Patience: patience})
	return func(ctx context.Context) error { return marks.Clear(ctx, restoreMark) }, marks.Save(ctx, restoreMark, "begun")
}

// begin finds out whether the copy may begin or go on, and says so in To.
func (c *Copy) begin(ctx context.Context) (err error) {
	if err := Whole(ctx, c.From); err != nil {
		return err
	}
	if c.inserts, err = inserts(ctx, c.From); err != nil {
		return err
	}
	purging := sql.Select{Columns: []string{"count()"}, From: whole(schema.TablePurgeTargets)}
	var targets uint64
	if err := c.From.QueryRow(ctx, purging.String()).Scan(&targets); err != nil {
		return err
	}
	if targets > 0 {
		return ErrPurging
	}
	var source string
	if err := c.From.QueryRow(ctx, "SELECT toString(uuid) FROM system.tables WHERE database = currentDatabase()"+
		" AND name = '"+schema.TableRuns+"'").Scan(&source); err != nil {
		return err
	}
	c.marks = checkpoint.NewLog(c.To, write.Retry{Logger: c.Logger, Patience: patience})
	mark := markPrefix + source
	begun, err := c.marks.Names(ctx, markPrefix)
	if err != nil || slices.Equal(begun, []string{mark}) {
		return err
	}
	empty, err := Empty(ctx, c.To)
	if err != nil {
		return err
	}
	if empty {
		return c.marks.Save(ctx, mark, "begun")
	}
	moved, err := ended(ctx, c.To, mark)
	if err == nil && moved {
		return ErrMoved
	}
	return errors.Join(err, ErrUsed)
}

// step makes a partition the same in both stores.
func (c *Copy) step(ctx context.Context, p partition) error {
	equal, err := c.equal(ctx, p)
	if err != nil || equal {
		return err
	}
	// Checkpoints have no partitions but the one in which the copy's own is. Sent again, they change nothing.
	if p.Table != schema.TableCheckpoints {
		if err := c.drop(ctx, p); err != nil {
			return err
		}
	}
	rows := sql.Select{Columns: []string{"*"}, From: whole(p.Table), Where: []string{"_partition_id = '" + p.ID + "'"}}
	if err := c.Send(ctx, rows.String(), "INSERT INTO "+p.Table); err != nil {
		return err
	}
	if equal, err = c.equal(ctx, p); err == nil && !equal {
		err = errors.New("the rows differ after they were sent")
	}
	return err
}

// equal reports whether both stores have the same rows in a partition, as FINAL merges them.
func (c *Copy) equal(ctx context.Context, p partition) (bool, error) {
	var of [2]struct{ n, sum uint64 }
	for i, conn := range []driver.Conn{c.From, c.To} {
		summed := sql.Select{
			Columns: []string{"count()", "sum(cityHash64(tuple(*)))"}, From: whole(p.Table).Final(!plain[p.Engine]),
			Where: []string{"_partition_id = '" + p.ID + "'"},
		}
		if p.Table == schema.TableCheckpoints {
			summed.Where = append(summed.Where, "NOT startsWith(name, '"+markPrefix+"')")
		}
		if err := conn.QueryRow(ctx, summed.String()).Scan(&of[i].n, &of[i].sum); err != nil {
			return false, err
		}
	}
	return of[0] == of[1], nil
}
