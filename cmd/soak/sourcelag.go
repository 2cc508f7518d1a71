package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/runlens/runlens/cmd/internal/harness"
	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/source/postgrestest"
)

const (
	// lagPatience is how long a worker may take to tell a lag that covers an instant: bulk updates take a while.
	lagPatience = 3 * time.Minute
	// idleFor is how long processor time is measured, after idleAfter without a change.
	idleFor   = 30 * time.Second
	idleAfter = 20 * time.Second
	// mostIdle is the most processor time of the source that an idle worker may take, in percent of a core.
	mostIdle = 1.0
	// mostLag is the most lag that an idle worker may tell, besides that of a standby.
	mostLag = 5 * time.Second
	// keepAlive is how long a primary on which nothing happens may say nothing to its standby, half of its
	// wal_sender_timeout. The standby does not know meanwhile that nothing happens.
	keepAlive = 30 * time.Second
	// clockTicks is how many ticks of /proc/PID/stat a second has.
	clockTicks = 100
)

// lag is the lag of runs that a worker tells, in seconds; not known before it has caught up.
func (w *copyWorker) lag(ctx context.Context) (seconds float64, known bool) {
	report, err := w.report(ctx)
	if k := report.Kinds[normalize.KindRun]; err == nil && k.LagSeconds != nil {
		return *k.LagSeconds, true
	}
	return 0, false
}

func (b *sources) lags(ctx context.Context) string {
	var all []string
	for _, c := range b.copies {
		for _, w := range c.workers {
			if seconds, known := w.lag(ctx); known {
				all = append(all, fmt.Sprintf("%s %.1f s", c.name, seconds))
			}
		}
	}
	return strings.Join(all, ", ")
}

// watchLag inserts one row after the other, and waits until each worker of a copy says that it has seen what is older
// than the instant after the row's commit. Then the row must be stored.
func (b *sources) watchLag(ctx, end context.Context, c *sourceCopy) error {
	conn, err := pgx.Connect(ctx, b.primary.URL())
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for harness.Pause(end, time.Second) {
		var id string
		err := conn.QueryRow(ctx, "INSERT INTO runs (organization_id, run_id, agent_id, status) VALUES ('markers', "+
			"gen_random_uuid(), gen_random_uuid(), 'RUNNING') RETURNING run_id::text").Scan(&id)
		if err != nil {
			return err
		}
		committed := time.Now()
		for i := range c.workers {
			if err := b.checkMarker(ctx, c, i, id, committed); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *sources) checkMarker(ctx context.Context, c *sourceCopy, n int, id string, committed time.Time) error {
	w := c.workers[n]
	covered := harness.Poll(ctx, lagPatience, 100*time.Millisecond, func() bool {
		before := time.Now()
		seconds, known := w.lag(ctx)
		if w.unready(ctx) != "" {
			b.unready.add(c.name)
		}
		return known && before.Add(-time.Duration(seconds*float64(time.Second))).After(committed)
	})
	if !covered {
		b.markers.add("not covered in time by " + c.name)
		return ctx.Err()
	}
	var stored uint64
	err := c.conn.QueryRow(ctx, "SELECT uniqExact(run_id) FROM runs WHERE organization_id = 'markers' AND run_id = '"+
		id+"'").Scan(&stored)
	if err != nil {
		return err
	}
	if b.markers.add(c.name); stored == 0 {
		b.told.add("worker %d of %s had seen what was committed at %s, and the run %s was not stored", n, c.name,
			committed.UTC().Format(time.RFC3339Nano), id)
	}
	return nil
}

// reportLoad holds what was seen while rows changed.
func (b *sources) reportLoad(ctx context.Context) {
	b.see("changes", "%s", &b.changes)
	b.see("rows by which lag was checked", "%s", &b.markers)
	b.see("readings of a worker that was not ready", "%s", &b.unready)
	for _, c := range []*sourceCopy{b.main, b.late} {
		b.hold("rows by which lag was checked: "+c.name, fmt.Sprint(b.markers.get(c.name)), "at least 5",
			b.markers.get(c.name) >= 5)
	}
	b.none("lags that were told too small", &b.told)
	for _, c := range b.copies {
		for i, w := range c.workers {
			if report, err := w.report(ctx); err == nil {
				b.see(fmt.Sprintf("worker %d of %s", i, c.name), "%d tries again, comparison %+v", report.Retries, report.Reconcile)
			}
		}
	}
	left, err := b.leftOfPerson(ctx)
	b.hold("rows of the purged person", fmt.Sprint(left, " ", errorText(err)), "0", left == 0 && err == nil)
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// measureIdle starts the workers as they are by default and measures what they take of the sources while nothing
// changes, and the lag that they tell.
func (b *sources) measureIdle(ctx context.Context) error {
	for _, c := range b.copies {
		if err := c.start(idleFlags...); err != nil {
			return err
		}
		why := ""
		if !harness.Poll(ctx, equalPatience, time.Second, func() bool { why = c.unready(ctx); return why == "" }) {
			return fmt.Errorf("%s: %s", c.name, why)
		}
	}
	b.say("nothing changes for %s", idleAfter+idleFor)
	harness.Pause(ctx, idleAfter)
	before := map[*sourceCopy]map[int]int64{}
	for _, c := range b.copies {
		var err error
		if before[c], err = ticksOf(ctx, c.url); err != nil {
			return err
		}
	}
	harness.Pause(ctx, idleFor)
	for _, c := range b.copies {
		after, err := ticksOf(ctx, c.url)
		if err != nil {
			return err
		}
		var ticks int64
		for pid, now := range after {
			ticks += now - before[c][pid]
		}
		each := float64(ticks) / clockTicks / idleFor.Seconds() * 100 / float64(len(c.workers))
		what := "processor time of an idle worker on " + c.name
		seen := fmt.Sprintf("%.2f %% of a core in %d sessions", each, len(after))
		if c == b.west { // every poll reads all runs, as the worker warns
			b.see(what, "%s", seen)
		} else {
			b.hold(what, seen, fmt.Sprintf("less than %.0f %%", mostIdle), each < mostIdle && len(after) > 0)
		}
		b.holdLag(ctx, c)
	}
	return ctx.Err()
}

// holdLag bounds the lag that an idle worker tells.
func (b *sources) holdLag(ctx context.Context, c *sourceCopy) {
	most := mostLag
	if c == b.late {
		most += keepAlive
	}
	told, known := c.workers[0].lag(ctx)
	b.hold("lag of an idle worker on "+c.name, fmt.Sprintf("%.1f s", told), fmt.Sprintf("at most %s", most),
		known && told <= most.Seconds())
}

// ticksOf is the processor time that each session of the workers has taken of a source.
func ticksOf(ctx context.Context, url string) (map[int]int64, error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	rows, err := conn.Query(ctx, "SELECT pid FROM pg_stat_activity WHERE usename = 'reader'"+
		" AND datname = current_database()")
	if err != nil {
		return nil, err
	}
	pids, err := pgx.CollectRows(rows, pgx.RowTo[int32])
	if err != nil {
		return nil, err
	}
	ticks := map[int]int64{}
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return nil, err
		}
		// After the name, which is in parentheses, the 12th and the 13th field are ticks of the process and of the kernel.
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		for _, field := range fields[11:13] {
			n, err := strconv.ParseInt(field, 10, 64)
			if err != nil {
				return nil, err
			}
			ticks[int(pid)] += n
		}
	}
	return ticks, nil
}

// reportTemporary holds that nothing was sorted on the disk of a source. The workers' sessions have to end first: then
// PostgreSQL counts what they did.
func (b *sources) reportTemporary(ctx context.Context) error {
	for _, c := range b.copies {
		c.stop()
	}
	spilled := false
	err := b.eachDatabase(func(name, url string) error {
		var err error
		var n float64
		harness.Poll(ctx, sourcePatience, time.Second, func() bool {
			n, err = numberOnSource(ctx, url, "SELECT count(*) FROM pg_stat_activity WHERE usename = 'reader'")
			return err == nil && n == 0
		})
		var bytes float64
		if err == nil {
			n, err = numberOnSource(ctx, url, "SELECT temp_files FROM pg_stat_database WHERE datname = current_database()")
		}
		if err == nil {
			bytes, err = numberOnSource(ctx, url, "SELECT temp_bytes FROM pg_stat_database WHERE datname = current_database()")
		}
		b.hold("temporary files on "+name, fmt.Sprintf("%.0f of %.0f bytes", n, bytes), "0", err == nil && n == 0)
		spilled = spilled || n > 0
		return err
	})
	if err != nil || !spilled {
		return err
	}
	for _, server := range []*postgrestest.Server{b.primary, b.standby} {
		spilled, err := server.Spilled()
		if err != nil {
			return err
		}
		for _, lines := range spilled {
			b.say("PostgreSQL: %s", lines) // of filling the databases, too
		}
	}
	return nil
}
