package olap

import (
	"context"
	"sync"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/runlens/runlens/olap/flight"
	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
)

const (
	// More changes than maxChanges are left to each statement: to send them along would cost as much as to look for them.
	maxChanges = 20_000
	// maxChanged is of how many organizations and sources changes are remembered: 50 take 150 MiB at most.
	maxChanged = 50
	// changesAge bounds how long changes are remembered that nobody asks for.
	changesAge = time.Minute
	// backOff is how long changes are not read again after there were too many; nor, for a slow statement, after the last
	// row was stored.
	backOff = 2 * time.Second
	// slowThreshold is from where on a statement looks for changes itself while rows arrive if those given did not hold: a refresh batch
	// would begin too often before it ends. Where it can be seen when a statement began, that does not matter (watchMarks).
	slowThreshold = 450 * time.Millisecond
	// stepPatience is how long a query waits for the end of a refresh batch, beside which changes cannot be read apart. To look for them meanwhile takes
	// longer, and the step too. One that takes longer is that of a large load; nobody waits for it again.
	stepPatience = time.Second
	// stepEvery is the time between two looks whether it has ended.
	stepEvery = 20 * time.Millisecond
	// watchEvery is the time between two looks whether a statement has its snapshots: quick ones end before the first.
	watchEvery = 50 * time.Millisecond
)

// A known is what changed in an organization since records were refreshed.
type known struct {
	counters snapshot.Counters // before the changes were read
	until    time.Time         // how far records were refreshed
	changes  *snapshot.Changes // nil where they could not be read apart from a statement
	shared   bool              // an initiator key stands for two texts, those of the changes among them
	since    time.Time         // what is not among them was stored after it
	readAt   time.Time
}

// A changes remembers what changed in organizations.
type changes struct {
	recent  recent[recordsOf, known]
	reading flight.Group[known]
	waiting flight.Group[struct{}] // for a step
	most    int                    // rows; more changes are not remembered
	patient time.Duration          // with a step
	margin  time.Duration          // of the store's clock

	mu       sync.Mutex
	observed time.Time // when this server looked first, by the store's clock; zero before
	longStep uint64    // number of the step before one that took longer than stepPatience
}

// know returns what changed in an organization with everything that was acknowledged before the call, for a statement
// that is slow or not.
func (c *changes) know(ctx context.Context, conn driver.Conn, of recordsOf, slow bool) (known, error) {
	counters, err := snapshot.ReadCounters(ctx, conn, of.organization, of.source)
	if err != nil {
		return known{}, err
	}
	last, remembered := c.recent.get(of)
	if remembered && counters.Records == last.counters.Records && counters.Marks == last.counters.Marks {
		last.counters.Now = counters.Now
		return last, nil
	}
	if slow && counters.Quiet() < backOff || remembered && last.changes == nil && time.Since(last.readAt) < backOff {
		return known{}, nil
	}
	key := string(of.organization) + "\x00" + of.source
	wait := func(ctx context.Context) (struct{}, error) { return struct{}{}, c.awaitStep(ctx, conn, of) }
	if _, err := c.waiting.Do(ctx, key, wait); err != nil {
		return known{}, err
	}
	// Whoever asks meanwhile waits for the next reading, so that it begins after the call.
	return c.reading.Do(ctx, key, func(ctx context.Context) (known, error) {
		return c.read(ctx, conn, of)
	})
}

// awaitStep waits for the end of a refresh batch, if one is going on and the rollup can be used after it.
func (c *changes) awaitStep(ctx context.Context, conn driver.Conn, of recordsOf) error {
	for began := time.Now(); ; {
		watermark, err := snapshot.ReadRollupState(ctx, conn)
		if err != nil || watermark.Boundary(of.organization, of.source).IsZero() || !watermark.Refreshing || c.isLong(watermark.Number, time.Since(began)) {
			return err
		}
		if err := snapshot.Pause(ctx, stepEvery); err != nil {
			return err
		}
	}
}

// isLong reports whether the step behind a number takes longer than stepPatience, for which somebody has waited.
func (c *changes) isLong(number uint64, waited time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if waited >= c.patient {
		c.longStep = number
	}
	return c.longStep == number
}

// read reads what changed and remembers it. While nobody refreshes, what changed before stays so, and only what was stored since is looked for.
func (c *changes) read(ctx context.Context, conn driver.Conn, of recordsOf) (k known, err error) {
	table := schema.RollupOf(of.source)
	if k.counters, err = snapshot.ReadCounters(ctx, conn, of.organization, of.source); err != nil {
		return k, err
	}
	watermark, err := snapshot.ReadRollupState(ctx, conn)
	k.until = watermark.Boundary(of.organization, of.source)
	if err != nil || k.until.IsZero() || watermark.Refreshing {
		return k, err
	}
	// A batch that was claimed since may write already.
	now, oldest, refreshing, err := snapshot.InFlight(ctx, conn)
	if err != nil || refreshing || !c.counted(now, oldest) {
		return k, err
	}
	since, before := k.until, (*snapshot.Changes)(nil)
	if last, _ := c.recent.get(of); last.changes != nil && last.counters.Marks == k.counters.Marks && last.since.After(since) {
		since, before = last.since, last.changes
	}
	k.since = oldest.Add(-c.margin - time.Millisecond)
	k.changes, err = snapshot.ReadChanges(ctx, conn, of.organization, table, since, before, c.most)
	if err == nil && k.changes != nil && len(table.Texts) > 0 {
		k.shared, err = k.changes.ReadShared(ctx, conn, of.organization)
	}
	if err == nil {
		k.readAt = time.Now()
		c.recent.put(of, k)
	}
	return k, err
}

// counted reports whether all inserts are counted in counters: those are not that began before the migration by
// which they are, which was before this server looked first.
func (c *changes) counted(now, oldest time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.observed.IsZero() {
		c.observed = now
	}
	return oldest.After(c.observed)
}

// watchMarks reads the marks of refreshing once a statement has its snapshots: ClickHouse takes them all before it reads the first row. If
// they are not those wanted, it calls stop. The function that it returns is to be called when the statement has ended; it tells whether they
// are, and whether they were read only then, because the statement was quick or runs on another node. given is how many rows come with the
// statement, which may count as read.
func (e *Engine) watchMarks(ctx context.Context, id uuid.UUID, given int, want snapshot.Count, stop func()) (ended func() (held, atEnd bool, err error)) {
	end, early := make(chan struct{}), make(chan bool, 1)
	go func() {
		defer close(early)
		for {
			select {
			case <-end:
				return
			case <-time.After(e.watch):
			}
			reads, err := snapshot.Reads(ctx, e.conn, id, given)
			if err != nil {
				return
			}
			if !reads {
				continue
			}
			if marks, err := snapshot.ReadLogCounter(ctx, e.conn); err == nil {
				if early <- marks == want; marks != want {
					stop()
				}
			}
			return
		}
	}()
	return func() (held, atEnd bool, err error) {
		close(end)
		if held, known := <-early; known {
			return held, false, nil
		}
		marks, err := snapshot.ReadLogCounter(ctx, e.conn)
		return marks == want, true, err
	}
}
