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
	// arrivalBudgets is how many times --budget a question is measured at least: rows come in every second, and are settled and merged
	// every few, so that the median of one second is that of chance.
	arrivalBudgets = 5

	// mostExtraCores is what settling may cost, in cores.
	mostExtraCores = 0.20

	arrivalPeriod = time.Second
	// cpuWindows is how many times --window the processor time is observed: merges come in bursts.
	cpuWindows = 3
)

// measureArrivals asks the questions of the large organization while rows of it arrive.
func (b *bench) measureArrivals(ctx context.Context) error {
	all, err := b.asked(ctx)
	if err != nil {
		return err
	}
	budget := b.Budget
	b.Budget *= arrivalBudgets
	defer func() { b.Budget = budget }()
	quiet, _, err := b.apiOnly(ctx, all)
	if err != nil {
		return err
	}
	feed := &arrivals{bench: b, rate: b.Rate}
	stop := feed.start(ctx)
	busy, _, err := b.apiOnly(ctx, all)
	arrived, feedErr := stop()
	if err != nil {
		return err
	}
	if feedErr != nil {
		return fmt.Errorf("arriving rows: %w", feedErr)
	}
	for i, q := range all {
		b.report.add(ratio("arrivals", q.title(), "quiet", busy[i], quiet[i], mostWhileArriving))
	}
	b.report.note("arrivals: %d rows a second were asked for, %.0f arrived", b.Rate, arrived)
	return b.measureCores(ctx, feed)
}

// apiOnly measures the questions of the large organization end to end.
func (b *bench) apiOnly(ctx context.Context, all []question) (measured []*stats, answers []answer, err error) {
	for _, q := range all {
		a := b.ask(q, b.world.large.first())
		one, err := b.compare(ctx, a.api)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", q.title(), err)
		}
		rows, err := answerOfJSON(a.response)
		if err != nil {
			return nil, nil, err
		}
		measured, answers = append(measured, one[0]), append(answers, rows)
	}
	return measured, answers, nil
}

// measureCores observes how much processor time the engine and the server take while rows arrive and nobody
// asks anything: into our tables, and into the naive ones. What ours cost beyond those is an upper bound of
// what settling costs.
func (b *bench) measureCores(ctx context.Context, feed *arrivals) error {
	engine, err := b.engineProcess()
	if err != nil {
		return err
	}
	var cores [2]float64
	for i, naive := range []bool{false, true} {
		feed.naive = naive
		b.rest(ctx)
		before, known := processorTime(engine.PID, b.server.process.Process.Pid)
		if !known {
			b.report.note("arrivals: this system does not tell the processor time of a process")
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
		after, _ := processorTime(engine.PID, b.server.process.Process.Pid)
		cores[i] = (after - before).Seconds() / time.Since(began).Seconds()
	}
	r := result{Scenario: "arrivals", Name: fmt.Sprintf("cores used by %d rows a second", b.Rate), Unit: "cores",
		Ours: statsOf(cores[:1]), Against: "naive", Reference: statsOf(cores[1:]), Measured: cores[0] - cores[1],
		Note: "(the difference, an upper bound of what settling costs)"}
	b.report.add(r.goal(fmt.Sprintf("at most %.2f more", mostExtraCores), r.Measured <= mostExtraCores))
	return nil
}

// Arrivals are rows of the large organization that come in every second: new runs, new attribution records and,
// a tenth, status changes of old runs.
type arrivals struct {
	bench *bench
	rate  int
	naive bool   // into the naive tables
	batch uint64 // the next one; ids never come again
	rows  int
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

// insert stores one batch.
func (a *arrivals) insert(ctx context.Context) error {
	c := a.bench.world.large
	g := generator{c, a.bench.world}
	now := instant(fmt.Sprintf("toInt64(%d)", time.Now().UnixMilli()))
	changes := uint64(a.rate) / 10
	newRuns := (uint64(a.rate) - changes) / 2
	first := c.size + a.batch*newRuns

	arriving := rowSet{columns: schema.RunColumns, fields: func(o, i string) map[string]string {
		fields := g.run(lastVersion, o, i)
		fields["created_at"], fields["updated_at"] = now, now
		return fields
	}}
	changing := rowSet{columns: schema.RunColumns, fields: func(o, i string) map[string]string {
		old := fmt.Sprintf("toUInt64(cityHash64('change', %d, %s) %% %d)", a.batch, i, c.size)
		fields := g.run(lastVersion, o, old)
		fields["status"], fields["updated_at"] = "'CANCELLED'", now
		return fields
	}}
	attributed := rowSet{columns: schema.AttributionColumns, fields: func(o, i string) map[string]string {
		fields := g.attribution(o, i)
		fields["occurred_at"] = now
		return fields
	}}
	prefix := ""
	if a.naive {
		prefix = "naive_"
	}
	for _, insert := range []struct {
		table string
		set   rowSet
		rows  string
	}{
		{schema.TableRuns, arriving, g.selectRows(arriving, first, first+newRuns) + " UNION ALL " + g.selectRows(changing, 0, changes)},
		{schema.TableAttributions, attributed, g.selectRows(attributed, first, first+newRuns)},
	} {
		err := a.bench.store.Conn().Exec(ctx, fmt.Sprintf("INSERT INTO %s%s (%s) %s", prefix, insert.table, strings.Join(insert.set.columns, ", "), insert.rows))
		if err != nil {
			return err
		}
	}
	a.batch++
	a.rows += int(changes + 2*newRuns)
	return nil
}

// measureOthers asks the questions of the large organization before and after ten times as many rows of
// others are there. The answers must stay the same.
func (b *bench) measureOthers(ctx context.Context) error {
	all, err := b.asked(ctx)
	if err != nil {
		return err
	}
	b.rest(ctx)
	before, was, err := b.apiOnly(ctx, all)
	if err != nil {
		return err
	}
	if err := b.loadClasses(ctx, b.world.others, ""); err != nil {
		return err
	}
	b.rest(ctx)
	if err := b.maintained(ctx); err != nil {
		return err
	}
	after, is, err := b.apiOnly(ctx, all)
	if err != nil {
		return err
	}
	for i, q := range all {
		b.report.check("after rows of other organizations, "+q.title(), is[i], was[i])
		b.report.add(ratio("others", q.title(), "before", after[i], before[i], mostAfterOthers))
	}
	return nil
}
