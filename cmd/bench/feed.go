package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/runlens/runlens/schema"
)

const (
	arrivalPeriod = time.Second
	// preparedBatches is how many batches are made at once: ten minutes' worth.
	preparedBatches = 600
)

// Arrivals are rows that come in every second, as many of each class: new runs, new attribution records and, a tenth,
// status changes of old runs. They are made beforehand: to make them takes the engine more than half as long as to
// store them.
type arrivals struct {
	bench    *bench
	classes  []class
	rate     int    // of all classes
	naive    bool   // into the naive tables
	batch    uint64 // the next one; ids never come again
	prepared uint64 // batches that are made
	rows     int
}

// prepare makes the next batches: tables of the rows by the number of their batch.
func (a *arrivals) prepare(ctx context.Context) error {
	from, to := a.prepared, a.prepared+preparedBatches
	rows := map[string][]string{}
	for _, c := range a.classes {
		for table, selected := range a.batches(c, from, to) {
			rows[table] = append(rows[table], selected...)
		}
	}
	for table, selected := range rows {
		all := strings.Join(selected, " UNION ALL ")
		statement := fmt.Sprintf("INSERT INTO arriving_%s %s", table, all)
		if from == 0 {
			statement = fmt.Sprintf("CREATE TABLE arriving_%s ENGINE = MergeTree ORDER BY v_batch AS %s", table, all)
		}
		if err := a.bench.store.Conn().Exec(ctx, statement); err != nil {
			return fmt.Errorf("make arriving rows: %w", err)
		}
	}
	a.prepared = to
	return nil
}

// batches are the statements that make the rows of a class in the batches from (inclusive) and to, by their tables.
func (a *arrivals) batches(c class, from, to uint64) map[string][]string {
	g := generator{c, a.bench.world}
	changes, newRuns := a.perBatch()
	// Row n of a set, counted from the first one, is one of batch n / perBatch.
	const notYet = "CAST(NULL AS Nullable(DateTime64(3, 'UTC')))" // when they arrive
	batched := func(columns []string, perBatch, first uint64, fields func(o, i string) map[string]string) rowSet {
		return rowSet{columns: append([]string{"batch"}, columns...), fields: func(o, i string) map[string]string {
			made := fields(o, i)
			made["batch"] = fmt.Sprintf("intDiv(%s * %d + %s - %d, %d)", i, c.count, o, first, perBatch)
			return made
		}}
	}
	arriving := batched(schema.RunColumns, newRuns, c.rows(), func(o, i string) map[string]string {
		fields := g.run(lastVersion, o, i)
		fields["created_at"], fields["updated_at"] = notYet, notYet
		return fields
	})
	changing := batched(schema.RunColumns, changes, 0, func(o, i string) map[string]string {
		fields := g.run(lastVersion, o, fmt.Sprintf("toUInt64(cityHash64('change', %s) %% %d)", i, c.size))
		fields["status"], fields["updated_at"] = "'CANCELLED'", notYet
		return fields
	})
	attributed := batched(schema.AttributionColumns, newRuns, c.rows(), func(o, i string) map[string]string {
		fields := g.attribution(o, i)
		fields["occurred_at"] = notYet
		return fields
	})
	return map[string][]string{
		schema.TableRuns: {
			g.selectRows(arriving, c.rows()+from*newRuns, c.rows()+to*newRuns),
			g.selectRows(changing, from*changes, to*changes),
		},
		schema.TableAttributions: {g.selectRows(attributed, c.rows()+from*newRuns, c.rows()+to*newRuns)},
	}
}

// perBatch is how many runs of a class change and how many are new in a batch, which has as many new attribution
// records.
func (a *arrivals) perBatch() (changes, newRuns uint64) {
	rate := uint64(a.rate / len(a.classes))
	changes = rate / 10
	return changes, (rate - changes) / 2
}

// start begins to insert a batch every second, until stop, which returns how many rows a second it was. A batch that is
// late is followed at once by the next one.
func (a *arrivals) start(ctx context.Context) (stop func() (perSecond float64, err error)) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	began := time.Now()
	first := a.batch
	a.rows = 0
	go func() {
		for {
			// A batch that began is finished: one that is cut off might have been stored or not.
			if err := a.insert(context.WithoutCancel(ctx)); err != nil {
				ended <- err
				return
			}
			select {
			case <-ctx.Done():
				ended <- nil
				return
			case <-time.After(time.Until(began.Add(time.Duration(a.batch-first) * arrivalPeriod))):
			}
		}
	}()
	return func() (float64, error) {
		cancel()
		err := <-ended
		due := time.Duration(a.batch-first) * arrivalPeriod // the last batch is that of a second which has only begun
		return float64(a.rows) / max(due, time.Since(began)).Seconds(), err
	}
}

// insert stores one batch, whose rows arrive now.
func (a *arrivals) insert(ctx context.Context) error {
	if a.batch == a.prepared {
		if err := a.prepare(ctx); err != nil {
			return err
		}
	}
	now := instant(fmt.Sprintf("toInt64(%d)", time.Now().UnixMilli()))
	prefix := ""
	if a.naive {
		prefix = "naive_"
	}
	both, ctx := errgroup.WithContext(ctx)
	for table, columns := range map[string][]string{
		schema.TableRuns: schema.RunColumns, schema.TableAttributions: schema.AttributionColumns,
	} {
		values := make([]string, len(columns))
		for k, column := range columns {
			values[k] = "v_" + column
			if strings.HasSuffix(column, "_at") {
				values[k] = fmt.Sprintf("ifNull(v_%s, %s)", column, now)
			}
		}
		statement := fmt.Sprintf("INSERT INTO %[1]s%[2]s (%[3]s) SELECT %[4]s FROM arriving_%[2]s WHERE v_batch = %[5]d",
			prefix, table, strings.Join(columns, ", "), strings.Join(values, ", "), a.batch)
		both.Go(func() error { return a.bench.store.Conn().Exec(ctx, statement) })
	}
	if err := both.Wait(); err != nil {
		return err
	}
	changes, newRuns := a.perBatch()
	a.batch++
	a.rows += len(a.classes) * int(changes+2*newRuns)
	return nil
}
