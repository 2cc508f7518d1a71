package rollup

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
)

// CheckShare is the most part of one core that a server spends on comparing the rollup. Repairs do not wait for it:
// they are urgent (Checker.Urgent).
const CheckShare = 0.02

// A Checker compares the rollup with its sources as long as the server runs, round after round, a section per step.
// Where it finds damage it writes an entry into the rollup log, by which all servers answer that organization from the
// base tables, and repairs it. So it does with entries that others wrote and did not finish. Several checkers may run
// on one store. It is a maintain.Task.
type Checker struct {
	prometheus.Collector // of its metrics

	refresher *Refresher
	logger    *slog.Logger
	here      Here

	walk     *walk    // of this round; nil between two
	next     *section // to be compared; nil for the next one of walk
	began    time.Time
	gaps     bool                      // a section of this round could not be compared
	compared atomic.Pointer[time.Time] // when the last round began that has ended; before the first, when the checker did
	repair   *repair                   // nil for none
	reported map[Difference]bool       // of the damages that are there
	turn     int                       // which of them is next
	did      string
	failed   bool // the last step failed to repair one: a section comes first

	rounds, differences, repaired prometheus.Counter
}

// A Here reads which organizations a store is there for: not for those that are being copied to it.
type Here func(context.Context) (func(schema.OrganizationID) bool, error)

// NewChecker returns a Checker that does nothing yet. Of organizations that the store is not there for it reports no
// damage.
func NewChecker(conn driver.Conn, here Here, logger *slog.Logger) *Checker {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	c := &Checker{
		refresher: New(conn, logger, Margin), logger: logger, here: here, reported: map[Difference]bool{},
		rounds: counter("runlens_rollup_check_rounds_total",
			"Times this server compared the whole rollup with its sources."),
		differences: counter("runlens_rollup_damaged_spans_total",
			"Differences between rollup and sources that this server found, by organization, table and quarter of a year."),
		repaired: counter("runlens_rollup_repairs_total",
			"Damages of an organization and a source that this server repaired."),
	}
	now := time.Now()
	c.compared.Store(&now)
	age := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "runlens_rollup_check_age_seconds",
		Help: "Every part of the rollup was compared since so many seconds ago, or since this server started."},
		func() float64 { return time.Since(*c.compared.Load()).Seconds() })
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(c.rounds, c.differences, c.repaired, age)
	c.Collector = metrics
	return c
}

// Step repairs what is damaged, or else compares the next section. It reports whether there may be more to do at once:
// not at the end of a round, nor while the rollup may not be used.
func (c *Checker) Step(ctx context.Context) (more bool, err error) {
	c.did = ""
	state, err := snapshot.ReadLog(ctx, c.refresher.conn)
	if err != nil {
		return false, err
	}
	if len(state.Damaged) == 0 {
		clear(c.reported)
	}
	switch {
	case !usable(state):
		return false, nil
	case c.repairs(state):
		c.did = "repair"
		more, err = true, c.repairDamage(ctx, state.Damaged[c.turn%len(state.Damaged)])
		if c.failed = err != nil && !atWork(err); c.failed {
			c.turn++
		}
	default:
		c.did, c.failed = "compare", false
		more, err = c.compare(ctx)
	}
	if atWork(err) {
		c.did = ""
		return true, nil
	}
	return more, err
}

// Did is that of maintain.Task.
func (c *Checker) Did() string { return c.did }

func usable(state snapshot.Log) bool { return !state.StoreWatermark().IsZero() && !state.Changing() }

// repairs reports whether the next step is a repair, by what the log says.
func (c *Checker) repairs(state snapshot.Log) bool {
	return usable(state) && len(state.Damaged) > 0 && !c.failed
}

// Urgent reports whether the next step is a repair: until then an organization is answered from the base tables.
func (c *Checker) Urgent(ctx context.Context) bool {
	state, err := snapshot.ReadLog(ctx, c.refresher.conn)
	return err == nil && c.repairs(state)
}

// compare compares the next section.
func (c *Checker) compare(ctx context.Context) (more bool, err error) {
	if c.walk == nil {
		c.began, c.gaps = time.Now(), false
		if c.walk, err = newWalk(ctx, c.refresher.conn); err != nil {
			return false, err
		}
	}
	if c.next == nil {
		if c.next, err = c.walk.next(ctx); err != nil {
			return false, err
		}
	}
	if c.next == nil {
		c.walk = nil
		if began := c.began; !c.gaps {
			c.rounds.Inc()
			c.compared.Store(&began)
		}
		return false, nil
	}
	found, under, err := c.refresher.confirm(ctx, *c.next, refreshedRecords)
	if len(found) > 0 {
		c.did = "report"
	}
	if under != nil {
		if err = c.report(ctx, under, found); err != nil { // what was found is not in the log: once more
			return true, errors.Join(err, under.end(ctx))
		}
	}
	if !atWork(err) {
		c.next, c.gaps = nil, c.gaps || err != nil
	}
	return true, err
}

// atWork reports whether an error says that others change the rollup.
func atWork(err error) bool {
	return errors.Is(err, errClaimed) || errors.Is(err, ErrLost)
}

// patiently does something again until others don't change the rollup meanwhile.
func patiently(ctx context.Context, do func() error) error {
	for {
		if err := do(); !atWork(err) {
			return err
		}
		if err := snapshot.Pause(ctx, claimPoll); err != nil {
			return err
		}
	}
}

// report writes damage into the rollup log, and logs it. That of which the log has an entry is known.
func (c *Checker) report(ctx context.Context, under *claim, found []Difference) error {
	here, err := c.here(ctx)
	if err != nil {
		return err
	}
	state, err := snapshot.ReadLog(ctx, c.refresher.conn)
	if err != nil {
		return err
	}
	found = slices.DeleteFunc(found, func(d Difference) bool {
		return slices.ContainsFunc(state.Damaged, func(known snapshot.Damage) bool {
			return string(known.Organization) == d.Organization && known.Source == c.next.table.Source
		})
	})
	organizations := map[bool][]string{} // by whether they are here
	var ours []Difference
	for _, d := range found {
		is := here(schema.OrganizationID(d.Organization))
		organizations[is] = append(organizations[is], d.Organization)
		if is {
			ours = append(ours, d)
		}
	}
	for is, some := range organizations {
		if err := under.damage(ctx, c.next.table.Source, !is, some...); err != nil {
			return err
		}
	}
	c.log(ours)
	return under.end(ctx)
}

// log logs and counts each difference once.
func (c *Checker) log(found []Difference) {
	for _, d := range found {
		of := d
		of.Records, of.InRollup = 0, 0
		if c.reported[of] {
			continue
		}
		c.reported[of] = true
		c.differences.Inc()
		c.logger.Warn("the rollup is damaged; its organization is answered from the base tables until it is repaired",
			"table", d.Table, "projection", d.Projection, "organization", d.Organization, "span", d.Span,
			"records", d.Records, "in_rollup", d.InRollup)
	}
}

// repairDamage repairs a damage until it is done or ctx ends. It continues a repair that it began earlier.
func (c *Checker) repairDamage(ctx context.Context, damage snapshot.Damage) (err error) {
	if r := c.repair; r == nil || r.of.Organization != damage.Organization || r.of.Source != damage.Source {
		if c.repair, err = c.refresher.newRepair(ctx, damage, c.log); err != nil {
			return err
		}
	}
	for {
		over, ended, err := c.repair.step(ctx)
		if over {
			c.repair = nil
		}
		switch {
		case ended && damage.Announced:
			c.logger.Info("the rollup is built again after a change", "organization", string(damage.Organization),
				"source", damage.Source)
		case ended:
			c.repaired.Inc()
			c.logger.Info("the rollup is repaired", "organization", string(damage.Organization), "source", damage.Source)
		}
		if over || err != nil {
			return err
		}
	}
}
