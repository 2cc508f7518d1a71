package purge

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
	"github.com/runlens/runlens/schema/sql"
)

// A target is a row of purge_targets: something by which rows to be purged are found.
type target struct {
	kind targetKind
	key  string
}

// targetKind is the kind of a target, as the column says it.
type targetKind string

const (
	targetOrganization targetKind = "organization"
	targetIdentifier   targetKind = "identifier" // of the person
	targetRun          targetKind = "run"        // id of a run that the person started
	targetName         targetKind = "name"       // of the person
	// targetRecord is the id of a record; of a run, one whose rollup rows are the person's, or of who shares a key. After
	// the name of its source: of a record of the person that was stamped ahead of the clock.
	targetRecord targetKind = "record"
)

const (
	forgetPatience = 10 * time.Second
	sweepPoll      = 100 * time.Millisecond
)

var errCountDisturbed = errors.New("purge: another purge began while rows were counted; count again")

// aim stores the targets while work goes on and takes them out afterwards, also when it failed.
func (p *Purge) aim(ctx context.Context, conn driver.Conn, work func() error) error {
	err := p.store(ctx, conn)
	if err == nil {
		err = work()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), forgetPatience)
	defer cancel()
	if forgetting := p.forget(ctx, conn); err == nil {
		err = forgetting
	}
	return err
}

// store writes the targets as data and derives further ones from them.
func (p *Purge) store(ctx context.Context, conn driver.Conn) error {
	if p.until.IsZero() {
		now, err := snapshot.Now(ctx, conn)
		if err != nil {
			return err
		}
		p.until = now
	}
	// The name of the statements says that they store no records.
	naming := func() context.Context {
		return clickhouse.Context(ctx, clickhouse.WithQueryID(snapshot.RefreshQueryID()),
			clickhouse.WithSettings(clickhouse.Settings{"async_insert": 0}))
	}
	batch, err := conn.PrepareBatch(naming(), "INSERT INTO "+schema.TablePurgeTargets+" (purge, kind, key)")
	if err != nil {
		return fmt.Errorf("purge: store what is purged: %w", err)
	}
	for _, t := range p.targets {
		if err := batch.Append(p.number, string(t.kind), t.key); err != nil {
			return fmt.Errorf("purge: store what is purged: %w", err)
		}
	}
	if err := batch.Send(); err != nil {
		return fmt.Errorf("purge: store what is purged: %w", err)
	}
	for _, statement := range p.derive {
		found := sql.Select{
			Distinct: true, Columns: []string{strconv.FormatUint(p.number, 10), "*"},
			From: sql.Query(sql.Text(p.sql(statement.String()))),
		}
		err := conn.Exec(naming(), "INSERT INTO "+schema.TablePurgeTargets+" (purge, kind, key) "+found.String())
		if err != nil {
			return fmt.Errorf("purge: find what is purged: %w", err)
		}
	}
	return nil
}

// Count sets Rows of each step to what Run would change now.
func (p *Purge) Count(ctx context.Context, conn driver.Conn) error {
	return p.aim(ctx, conn, func() error {
		for i := range p.Steps {
			s := &p.Steps[i]
			count := sql.Select{
				Columns: []string{"toInt64(count())"}, From: ofTarget(s.Table), Where: []string{p.sql(s.where)},
			}
			if err := conn.QueryRow(ctx, count.String()).Scan(&s.Rows); err != nil {
				return fmt.Errorf("purge: count the rows of %s: %w", s.Table, err)
			}
		}
		return p.unchanged(ctx, conn)
	})
}

// unchanged returns an error when a purge that runs meanwhile has taken these targets for those of a process that
// died.
func (p *Purge) unchanged(ctx context.Context, conn driver.Conn) error {
	var n uint64
	if err := conn.QueryRow(ctx, p.stored("count()").String()).Scan(&n); err != nil {
		return fmt.Errorf("purge: count: %w", err)
	}
	if n == 0 {
		return errCountDisturbed
	}
	return nil
}

// forget takes the targets out.
func (p *Purge) forget(ctx context.Context, conn driver.Conn) error {
	err := conn.Exec(ctx, fmt.Sprintf("ALTER TABLE %s DROP PARTITION ID '%d'", schema.TablePurgeTargets, p.number))
	if err != nil {
		return fmt.Errorf("purge: take out what was purged by; it is taken out by the next purge: %w", err)
	}
	return sweepTable(ctx, conn, schema.TablePurgeTargets)
}

// Sweep does for what Moved has taken out of a store what Run does for other purges: it returns when the files are
// deleted.
func Sweep(ctx context.Context, conn driver.Conn) error { return Organization().sweep(ctx, conn) }

// sweep waits until the parts that the purge replaced are deleted from the disk. Where ClickHouse keeps such parts
// for a while (old_parts_lifetime, 0 in the embedded engine), it does not wait.
func (p *Purge) sweep(ctx context.Context, conn driver.Conn) error {
	var lifetime int64
	const kept = "SELECT max(toInt64(value)) FROM system.merge_tree_settings WHERE name = 'old_parts_lifetime'"
	err := conn.QueryRow(ctx, kept).Scan(&lifetime)
	if err != nil {
		return fmt.Errorf("purge: read how long replaced files are kept: %w", err)
	}
	for _, s := range p.Steps {
		if lifetime == 0 && err == nil {
			err = sweepTable(ctx, conn, s.Table)
		}
	}
	return err
}

// Aside returns the tables of the purge of which ClickHouse has parts that were put aside, because they are damaged or
// somebody detached them. No answer has their rows. They may be of whoever is purged, and no statement changes them.
func (p *Purge) Aside(ctx context.Context, conn driver.Conn) (tables []string, err error) {
	var ours []string
	for _, s := range p.Steps {
		ours = append(ours, s.Table)
	}
	err = conn.QueryRow(ctx, "SELECT arraySort(groupUniqArray(table)) FROM system.detached_parts"+
		" WHERE database = currentDatabase() AND table IN {tables:Array(String)}",
		clickhouse.Named("tables", ours)).Scan(&tables)
	if err != nil {
		err = fmt.Errorf("purge: search for parts that were put aside: %w", err)
	}
	return tables, err
}

// sweepTable waits until the parts of a table that are replaced by now are deleted. ClickHouse deletes such parts at
// the end of DROP PARTITION, also of one that does not exist, and otherwise when it comes to it, within minutes. A
// part that a query reads is deleted after the query.
func sweepTable(ctx context.Context, conn driver.Conn, table string) error {
	const replaced = " FROM system.parts WHERE database = currentDatabase() AND table = {table:String}" +
		" AND _state NOT IN ('Active', 'PreActive', 'Temporary')"
	var names []string
	err := conn.QueryRow(ctx, "SELECT groupArray(name)"+replaced, clickhouse.Named("table", table)).Scan(&names)
	if err != nil {
		return fmt.Errorf("purge: search for replaced files: %w", err)
	}
	for len(names) > 0 {
		if err := conn.Exec(ctx, "ALTER TABLE "+table+" DROP PARTITION ID 'none'"); err != nil {
			return fmt.Errorf("purge: delete replaced files: %w", err)
		}
		var left uint64
		err := conn.QueryRow(ctx, "SELECT count()"+replaced+" AND name IN {names:Array(String)}",
			clickhouse.Named("table", table), clickhouse.Named("names", names)).Scan(&left)
		if err != nil {
			return fmt.Errorf("purge: search for replaced files: %w", err)
		}
		if left == 0 {
			return nil
		}
		if err := snapshot.Pause(ctx, sweepPoll); err != nil {
			return err
		}
	}
	return nil
}
