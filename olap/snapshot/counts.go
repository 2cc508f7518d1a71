package snapshot

import (
	"context"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/failure"
	"github.com/runlens/runlens/schema"
)

// Counts are an organization's rows in insert_counters.
type Counts struct {
	runs, attributions, agents, conflicts Count
}

// A Count is of rows that were ever inserted. An insert counts before it is acknowledged.
type Count struct {
	rows   uint64
	latest int64 // when the last of them were stored, in Unix milliseconds
}

func (c *Count) add(rows uint64, latest time.Time) {
	c.rows, c.latest = c.rows+rows, max(c.latest, latest.UnixMilli())
}

// newest is when the newest record was stored, in Unix milliseconds; 0 for none.
func (c Counts) newest() int64 { return max(c.runs.latest, c.attributions.latest) }

func (c Counts) storedUntil(at time.Time) bool { return c.newest() <= at.UnixMilli() }

// only are those of a source; all of them where it is empty.
func (c Counts) only(source string) (of Counts) {
	if source == "" {
		return c
	}
	*of.of(source) = *c.of(source)
	return of
}

// of is the count of a source; nil for none.
func (c *Counts) of(source string) *Count {
	switch source {
	case schema.TableRuns:
		return &c.runs
	case schema.TableAttributions:
		return &c.attributions
	case schema.TableAgents:
		return &c.agents
	case schema.TableConflicts:
		return &c.conflicts
	}
	return nil
}

// A storedRow is a row of insert_counters, of which a count has a few, or of the rollup log.
type storedRow struct {
	Now          time.Time `ch:"now"`
	Uptime       uint32    `ch:"uptime"`
	Failed       uint64    `ch:"failed"`
	Source       string    `ch:"source"`
	Organization string    `ch:"organization_id"`
	Kind         string    `ch:"kind"` // empty for a count
	Number       uint64    `ch:"number"`
	Value        int64     `ch:"value"`
	At           time.Time `ch:"at"`
}

const (
	readNow  = "SELECT now64(3, 'UTC') AS now, uptime() AS uptime"
	failed   = ", (" + readFailures + ") AS failed"
	unknown  = ", toUInt64(0) AS failed"
	counts   = ", rows AS number, last_stored_at AS at FROM " + schema.TableInsertCounters
	ofNamed  = " WHERE organization_id IN {organizations:Array(String)}"
	readOf   = ", source, organization_id" + counts + ofNamed
	readWith = ", toString(source) AS source, organization_id, '' AS kind, toInt64(0) AS value" + counts + ofNamed +
		" UNION ALL SELECT now64(3, 'UTC'), uptime(), toUInt64(0), source, organization_id, kind," +
		" tupleElement(latest, 'value'), tupleElement(latest, 'number'), tupleElement(latest, 'recorded_at') FROM " +
		schema.TableRollupLog
)

// readStored completes a snapshot with the counts of organizations, the number of inserts that failed and, if it is
// wanted, the rollup log. Rows are summed in Go: every function in the text costs ClickHouse more.
func (s *Snapshot) readStored(
	ctx context.Context, conn driver.Conn, withLog bool, organizations []schema.OrganizationID,
) error {
	names := []string{""} // the store's own
	s.of = make(map[schema.OrganizationID]Counts, len(organizations))
	for _, organization := range organizations {
		names, s.of[organization] = append(names, string(organization)), Counts{}
	}
	text := readOf
	if withLog {
		text = readWith
	}
	parameter := clickhouse.Named("organizations", names)
	var rows []storedRow
	err := conn.Select(OneThread(ctx), &rows, readNow+failed+text, parameter)
	if refused(err) {
		s.failed.unknown = true
		err = conn.Select(OneThread(ctx), &rows, readNow+unknown+text, parameter)
	}
	if err == nil && len(rows) == 0 { // a store in which nothing was ever counted
		rest := failed
		if s.failed.unknown {
			rest = unknown
		}
		err = conn.Select(OneThread(ctx), &rows, readNow+rest)
	}
	if err != nil {
		return failure.Of("read what the store has", err)
	}
	s.collect(rows)
	return nil
}

// collect adds rows to a snapshot. All of them have the clock, and those of the log do not have the number of inserts
// that failed.
func (s *Snapshot) collect(rows []storedRow) {
	var log logRows
	for _, row := range rows {
		if s.Now.IsZero() {
			s.Now = row.Now.UTC()
		}
		s.started = row.Now.Add(-time.Duration(row.Uptime) * time.Second)
		s.failed.n = max(s.failed.n, row.Failed)
		switch {
		case row.Kind != "":
			log.add(row)
		case row.Source == schema.TableRollupLog:
			s.log.add(row.Number, row.At)
		case row.Source == schema.SourceAlterations && row.Organization == "":
			s.altering.add(row.Number, row.At)
		default:
			organization := schema.OrganizationID(row.Organization)
			c := s.of[organization]
			if count := c.of(row.Source); count != nil {
				count.add(row.Number, row.At)
				s.of[organization] = c
			}
		}
	}
	if len(rows) > 0 {
		s.Log = log.log(rows[0].Now)
	}
}
