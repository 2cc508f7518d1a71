// Package doctor examines a ClickHouse: whether it is one that answers can be trusted of, and what will stop it from
// working. It changes nothing. Where a check can't be made, because a right is missing, it says so.
package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/doctor/finding"
	"github.com/runlens/runlens/olap/failure"
	"github.com/runlens/runlens/schema"
)

// A Store is what is examined.
type Store struct {
	Conn     driver.Conn
	Database string
	Embedded bool // the engine is a child of runlens, which configures it
	Servers  int  // how many ClickHouse servers the address reached
	// State reads the migrations' state.
	State func(context.Context) (schema.State, error)
	Limits
}

// Limits say from where on a figure is a warning, or a problem. All are inclusive.
type Limits struct {
	ClockWarning, ClockProblem time.Duration // by which the clocks differ
	DiskWarning, DiskProblem   Space         // less of either than that
	OpenFiles                  uint64        // ClickHouse's own limit
	LongMutation               time.Duration
}

// A Space is how much of a disk is free.
type Space struct {
	Bytes   uint64
	Percent float64 // 0 to 100
}

// Usual are the limits of the command.
var Usual = Limits{
	ClockWarning: finding.ClockWarning, ClockProblem: finding.ClockProblem,
	DiskWarning: Space{5 << 30, 10}, DiskProblem: Space{512 << 20, 2},
	OpenFiles: 8192, LongMutation: time.Minute,
}

// A check examines one thing. Its findings have no name. An error means that it could not be made.
type check struct {
	name  string
	reads []string // tables of the database system that need a right of their own
	make  func(Store, context.Context) ([]finding.Finding, error)
}

// glance are the checks that together take some ten milliseconds.
var glance = []check{
	{"version", nil, Store.version},
	{"topology", nil, Store.topology},
	{"grants", nil, Store.grants},
	{"clock", nil, Store.clock},
	{"disks", []string{"disks", "storage_policies"}, Store.disks},
	{"damaged parts", []string{"detached_parts"}, Store.damage},
	{"settings", nil, Store.settings},
}

// rest are the checks that read more, or what a start has just made right.
var rest = []check{
	{"parameters", nil, Store.parameters},
	{"migrations", nil, Store.migrations},
	{"tables", nil, Store.tables},
	{"mutations", []string{"mutations"}, Store.mutations},
	{"open files", []string{"server_settings"}, Store.openFiles},
	{"log tables", nil, Store.logTables},
}

// Examine makes all checks.
func (s Store) Examine(ctx context.Context) []finding.Finding {
	return append(s.Glance(ctx), s.run(ctx, rest)...)
}

// Glance makes the checks that a server has time for when it starts.
func (s Store) Glance(ctx context.Context) []finding.Finding { return s.run(ctx, glance) }

func (s Store) run(ctx context.Context, checks []check) (all []finding.Finding) {
	for _, c := range checks {
		found, err := c.make(s, ctx)
		if err != nil {
			found = append(found, s.unknown(ctx, c, err))
		}
		for _, f := range found {
			f.Check = c.name
			all = append(all, f)
		}
	}
	return all
}

// unknown is the finding of a check that failed.
func (s Store) unknown(ctx context.Context, c check, err error) finding.Finding {
	rights := make([]string, len(c.reads))
	for i, table := range c.reads {
		rights[i] = "SELECT ON system." + table
	}
	if len(rights) > 0 {
		if has, failed := s.granted(ctx, strings.Join(rights, ", ")); failed == nil && !has {
			return of(finding.Unknown, grant(s.user(ctx), rights...), "the user may not read what this needs")
		}
	}
	return of(finding.Unknown, "", "%s", finding.OneLine(failure.Of("it cannot be read", err).Error()))
}

// user is the name of the user, as SQL.
func (s Store) user(ctx context.Context) string {
	var name string
	if s.Conn.QueryRow(ctx, "SELECT currentUser()").Scan(&name) != nil {
		return "USER"
	}
	return identifier(name)
}

// identifier quotes a name for SQL.
func identifier(name string) string {
	return "`" + strings.NewReplacer(`\`, `\\`, "`", "\\`").Replace(name) + "`"
}

func ok(format string, values ...any) []finding.Finding {
	return []finding.Finding{of(finding.OK, "", format, values...)}
}

// of is a finding in words.
func of(result finding.Result, do, format string, values ...any) finding.Finding {
	return finding.Finding{Result: result, Says: fmt.Sprintf(format, values...), Do: do}
}

// rows reads the rows of a statement.
func rows[R any](ctx context.Context, s Store, sql string, args ...any) (all []R, err error) {
	err = s.Conn.Select(ctx, &all, sql, args...)
	return all, err
}
