package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/runlens/runlens/schema"
)

const (
	mostWhileArriving = 1.5
	mostAfterOthers   = 1.2
	// While rows arrive, and before and after that, each question is measured in several turns, between which all others
	// run: rows come in every second and are refreshed and merged every few, and a machine may be slow for a minute.
	arrivalTurns = 6
	quietTurns   = arrivalTurns / 2

	// mostExtraCores is what refreshing may cost, in cores.
	mostExtraCores = 0.20

	arrivalPeriod = time.Second
	// cpuWindows is how many times --window the processor time is observed: merges come in bursts.
	cpuWindows = 3
)

// measureArrivals sends the questions of the large organization while rows of it arrive, and before and after that, so
// that a machine that gets slower or quicker meanwhile hits both sides.
func (b *bench) measureArrivals(ctx context.Context) error {
	all, err := b.largeQuestions(ctx)
	if err != nil {
		return err
	}
	feed := &arrivals{bench: b, rate: b.Rate}
	if err := feed.prepare(ctx); err != nil {
		return err
	}
	b.rest(ctx)
	before, _, err := b.apiOnly(ctx, all, quietTurns)
	if err != nil {
		return err
	}
	stop := feed.start(ctx)
	busy, _, err := b.apiOnly(ctx, all, arrivalTurns)
	arrived, feedErr := stop()
	if err != nil {
		return err
	}
	if feedErr != nil {
		return fmt.Errorf("arriving rows: %w", feedErr)
	}
	if err := b.maintained(ctx, "the last rows arrived"); err != nil {
		return err
	}
	after, _, err := b.apiOnly(ctx, all, quietTurns)
	if err != nil {
		return err
	}
	for i, q := range all {
		b.report.add(ratio("arrivals", q.title(), "quiet", busy[i], before[i].and(after[i]), mostWhileArriving))
	}
	b.report.note("arrivals: %d rows a second were requested, %.0f arrived", b.Rate, arrived)
	return b.measureCores(ctx, feed)
}

// apiOnly measures the questions of the large organization end to end, all of them in each turn.
func (b *bench) apiOnly(
	ctx context.Context, all []question, turns int,
) (measured []*stats, answers []answer, err error) {
	measured, answers = make([]*stats, len(all)), make([]answer, len(all))
	for turn := range turns {
		for i, q := range all {
			a := b.inquiry(q, b.world.large.first())
			one, err := b.compareTimes(ctx, (b.Repeat+turns-1)/turns, a.api)
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", q.title(), err)
			}
			if turn > 0 {
				measured[i] = measured[i].and(one[0])
				continue
			}
			measured[i] = one[0]
			if answers[i], err = answerOfJSON(a.response); err != nil {
				return nil, nil, err
			}
		}
	}
	return measured, answers, nil
}

// measureCores observes how much processor time the engine and the server take while rows arrive and nobody
// queries anything: into our tables, and into the naive ones. What ours cost beyond those is an upper bound of
// what refreshing costs.
func (b *bench) measureCores(ctx context.Context, feed *arrivals) error {
	engine, err := b.engineProcess()
	if err != nil {
		return err
	}
	var cores [2]float64
	for i, naive := range []bool{false, true} {
		feed.naive = naive
		b.rest(ctx)
		before, known := processorTime(engine.PID, b.server.PID())
		if !known {
			b.report.note("arrivals: this system does not report the processor time of a process")
			return nil
		}
		began := time.Now()
		stop := feed.start(ctx)
		select {
		case <-time.After(cpuWindows * b.Window):
		case <-ctx.Done():
		}
		if _, err := stop(); err != nil {
			return fmt.Errorf("arriving rows: %w", err)
		}
		after, _ := processorTime(engine.PID, b.server.PID())
		cores[i] = (after - before).Seconds() / time.Since(began).Seconds()
	}
	r := result{Scenario: "arrivals", Name: fmt.Sprintf("cores used by %d rows a second", b.Rate), Unit: "cores",
		Ours: statsOf(cores[:1]), Against: "naive", Reference: statsOf(cores[1:]), Measured: cores[0] - cores[1],
		Note: "(the difference, an upper bound of what refreshing costs)"}
	b.report.add(r.goal(fmt.Sprintf("at most %.2f more", mostExtraCores), r.Measured <= mostExtraCores))
	return nil
}

// Arrivals are rows of the large organization that come in every second: new runs, new attribution records and, a
// tenth, status changes of old runs. They are made beforehand: to make them takes the engine more than half as long as
// to store them.
type arrivals struct {
	bench    *bench
	rate     int
	naive    bool   // into the naive tables
	batch    uint64 // the next one; ids never come again
	prepared uint64 // batches that are made
	rows     int
}

// preparedBatches is how many batches are made at once: ten minutes' worth.
const preparedBatches = 600

// prepare makes the next batches: tables of the rows by the number of their batch.
func (a *arrivals) prepare(ctx context.Context) error {
	c := a.bench.world.large
	g := generator{c, a.bench.world}
	changes, newRuns := a.perBatch()
	// Row n of a set is one of batch n / perBatch.
	const notYet = "CAST(NULL AS Nullable(DateTime64(3, 'UTC')))" // when they arrive
	batched := func(columns []string, perBatch, first uint64, fields func(o, i string) map[string]string) rowSet {
		return rowSet{columns: append([]string{"batch"}, columns...), fields: func(o, i string) map[string]string {
			made := fields(o, i)
			made["batch"] = fmt.Sprintf("intDiv(toUInt64(%s) - %d, %d)", i, first, perBatch)
			return made
		}}
	}
	arriving := batched(schema.RunColumns, newRuns, c.size, func(o, i string) map[string]string {
		fields := g.run(lastVersion, o, i)
		fields["created_at"], fields["updated_at"] = notYet, notYet
		return fields
	})
	changing := batched(schema.RunColumns, changes, 0, func(o, i string) map[string]string {
		fields := g.run(lastVersion, o, fmt.Sprintf("toUInt64(cityHash64('change', %s) %% %d)", i, c.size))
		fields["status"], fields["updated_at"] = "'CANCELLED'", notYet
		return fields
	})
	attributed := batched(schema.AttributionColumns, newRuns, c.size, func(o, i string) map[string]string {
		fields := g.attribution(o, i)
		fields["occurred_at"] = notYet
		return fields
	})
	from, to := a.prepared, a.prepared+preparedBatches
	for table, rows := range map[string]string{
		schema.TableRuns: g.selectRows(arriving, c.size+from*newRuns, c.size+to*newRuns) +
			" UNION ALL " + g.selectRows(changing, from*changes, to*changes),
		schema.TableAttributions: g.selectRows(attributed, c.size+from*newRuns, c.size+to*newRuns),
	} {
		statement := fmt.Sprintf("INSERT INTO arriving_%s %s", table, rows)
		if from == 0 {
			statement = fmt.Sprintf("CREATE TABLE arriving_%s ENGINE = MergeTree ORDER BY v_batch AS %s", table, rows)
		}
		if err := a.bench.store.Conn().Exec(ctx, statement); err != nil {
			return fmt.Errorf("make arriving rows: %w", err)
		}
	}
	a.prepared = to
	return nil
}

// perBatch is how many runs change and how many are new in a batch, which has as many new attribution records.
func (a *arrivals) perBatch() (changes, newRuns uint64) {
	changes = uint64(a.rate) / 10
	return changes, (uint64(a.rate) - changes) / 2
}

// start begins to insert a batch every second, until stop, which returns how many rows a second it was.
func (a *arrivals) start(ctx context.Context) (stop func() (perSecond float64, err error)) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	began := time.Now()
	first := a.batch
	a.rows = 0
	go func() {
		tick := time.NewTicker(arrivalPeriod)
		defer tick.Stop()
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
			case <-tick.C:
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
	for _, insert := range []struct {
		table   string
		columns []string
	}{{schema.TableRuns, schema.RunColumns}, {schema.TableAttributions, schema.AttributionColumns}} {
		values := make([]string, len(insert.columns))
		for k, column := range insert.columns {
			values[k] = "v_" + column
			if strings.HasSuffix(column, "_at") {
				values[k] = fmt.Sprintf("ifNull(v_%s, %s)", column, now)
			}
		}
		err := a.bench.store.Conn().
			Exec(ctx, fmt.Sprintf("INSERT INTO %[1]s%[2]s (%[3]s) SELECT %[4]s FROM arriving_%[2]s WHERE v_batch = %[5]d",
				prefix, insert.table, strings.Join(insert.columns, ", "), strings.Join(values, ", "), a.batch))
		if err != nil {
			return err
		}
	}
	changes, newRuns := a.perBatch()
	a.batch++
	a.rows += int(changes + 2*newRuns)
	return nil
}

// measureOthers sends the questions of the large organization before and after ten times as many rows of
// others are there. The answers must stay the same.
func (b *bench) measureOthers(ctx context.Context) error {
	all, err := b.largeQuestions(ctx)
	if err != nil {
		return err
	}
	b.rest(ctx)
	before, was, err := b.apiOnly(ctx, all, 1)
	if err != nil {
		return err
	}
	if err := b.loadClasses(ctx, b.world.others, ""); err != nil {
		return err
	}
	if err := b.maintained(ctx, "the load"); err != nil {
		return err
	}
	after, is, err := b.apiOnly(ctx, all, 1)
	if err != nil {
		return err
	}
	for i, q := range all {
		b.report.check("after rows of other organizations, "+q.title(), is[i], was[i])
		b.report.add(ratio("others", q.title(), "before", after[i], before[i], mostAfterOthers))
	}
	return nil
}
