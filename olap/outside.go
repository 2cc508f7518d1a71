package olap

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/ext"
	"github.com/google/uuid"

	"github.com/runlens/runlens/olap/compile"
	"github.com/runlens/runlens/olap/exec"
	"github.com/runlens/runlens/olap/flight"
	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
)

const (
	// More than maxOutside hashes are left to each statement to look for.
	maxOutside = 100_000
	// maxOutsideOf is of how many ranges hashes are remembered: 100 take 40 MiB at most.
	maxOutsideOf = 100
	// outsideAge is how long they are remembered.
	outsideAge = time.Minute
	// maxSince is how many records may be stored meanwhile, whose runs are all looked for. Of a month of ten million records a year, 8,000 runs are missing.
	maxSince = 5_000
)

// A rangeOf is the range of a query, in Unix milliseconds, in an organization.
type rangeOf struct {
	organization schema.OrganizationID
	start, end   int64
}

// A missing knows the runs that were not near (compile.RunsOutside) of all records of a range stored until an instant, and where the near ones are. That stays enough: a run
// that is near stays so, records do not change, and of those stored later a statement looks for all runs.
type missing struct {
	hashes  *ext.Table // nil if there are too many
	until   time.Time  // by the store's clock
	at      time.Time  // by this server's clock, not before
	records snapshot.Count
	whole   []string // parts of the near runs (snapshot.MergedParts)
}

// holds reports whether the store's clock, which told asOf, was not set back since: what was stored since may seem to be older then.
// It does not for pages of a continuation that began earlier.
func (m missing) holds(asOf time.Time, elapsed time.Duration) bool {
	return !asOf.Before(m.until.Add(elapsed - snapshot.ClockMargin))
}

// A runsOutside remembers missing runs. Finding them takes a quarter of the time of a statement that needs the states of its runs.
type runsOutside struct {
	recent  recent[rangeOf, missing]
	reading flight.Group[missing]
}

// sendRunsOutside answers with a statement to which the runs of its range are given that are not near, unless runs of the organization
// moved: a run that was near where it does not count any more would be missed.
func (e *Engine) sendRunsOutside(ctx context.Context, r Request, in compile.Input) (*Result, error) {
	moved, err := snapshot.RunsMoved(ctx, e.conn, in.Organization)
	if err != nil {
		return nil, err
	}
	if moved {
		return e.execute(ctx, r, in, nil)
	}
	known, err := e.missing.know(ctx, e, r, in)
	if err != nil {
		return nil, err
	}
	elapsed := time.Since(known.at)
	if known.hashes == nil || !in.AsOf.IsZero() && !known.holds(in.AsOf, elapsed) {
		return e.execute(ctx, r, in, nil)
	}
	given := in
	given.OutsideSince, given.MergedParts = known.until.Add(-snapshot.ClockMargin), known.whole
	result, err := e.execute(ctx, r, given, nil, known.hashes)
	if err != nil || result.asOf.IsZero() || known.holds(result.asOf, elapsed) {
		return result, err
	}
	r.QueryID = uuid.New() // ClickHouse may not be done with the other one yet
	return e.execute(ctx, r, in, nil)
}

func (m *runsOutside) know(ctx context.Context, e *Engine, r Request, in compile.Input) (missing, error) {
	of := rangeOf{in.Organization, in.Query.Range.StartUTC.UnixMilli(), in.Query.Range.EndUTC.UnixMilli()}
	if known, ok := m.recent.get(of); ok {
		stored, err := snapshot.ReadInsertCounter(ctx, e.conn, in.Organization, in.Query.Model.Source.Table)
		if err != nil || stored.Records.Since(known.records) <= maxSince {
			return known, err
		}
	}
	return m.reading.Do(ctx, fmt.Sprint(of), func(ctx context.Context) (missing, error) {
		known, err := readRunsOutside(ctx, e, r, in)
		if err == nil {
			m.recent.put(of, known)
		}
		return known, err
	})
}

// readRunsOutside reads them when every insert that began before their instant has ended.
func readRunsOutside(ctx context.Context, e *Engine, r Request, in compile.Input) (known missing, err error) {
	boundary, err := snapshot.PageBoundary(ctx, e.conn)
	if err != nil {
		return known, err
	}
	stored, err := snapshot.ReadInsertCounter(ctx, e.conn, in.Organization, in.Query.Model.Source.Table)
	if err != nil {
		return known, err
	}
	known.until, known.at, known.records = boundary.AsOf, time.Now(), stored.Records
	start, last := compile.Near(in.Query.Range)
	if known.whole, err = snapshot.MergedParts(ctx, e.conn, start, last); err != nil {
		return known, err
	}
	found, err := exec.Run(ctx, e.conn, compile.RunsOutside(in, maxOutside+1), uuid.New(), comment(r, nil))
	if err != nil || len(found.Rows) > maxOutside {
		return known, err
	}
	if known.hashes, err = ext.NewTable(schema.TableRunsOutside, ext.Column("run_hash", "UInt32")); err != nil {
		return known, err
	}
	for _, row := range found.Rows {
		if err := known.hashes.Append(uint32(row[0].Count())); err != nil {
			return missing{}, err
		}
	}
	return known, nil
}
