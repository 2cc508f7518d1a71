package doctor

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/runlens/runlens/olap/doctor/finding"
	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
)

// The releases of ClickHouse, by year and month: the oldest one that works, and those that the tests run with.
const (
	oldestYear, oldestMonth = 26, 1
	tested                  = "26.3 and 26.7"
)

func (s Store) version(ctx context.Context) ([]finding.Finding, error) {
	var version string
	if err := s.Conn.QueryRow(ctx, "SELECT version()").Scan(&version); err != nil {
		return nil, err
	}
	return judgeVersion(version), nil
}

func judgeVersion(version string) []finding.Finding {
	parts := strings.Split(version, ".")
	if len(parts) < 2 {
		return []finding.Finding{of(finding.Unknown, "", "ClickHouse calls its version %q", version)}
	}
	year, _ := strconv.Atoi(parts[0])
	month, _ := strconv.Atoi(parts[1])
	if year < oldestYear || year == oldestYear && month < oldestMonth {
		return []finding.Finding{of(finding.Problem, "upgrade ClickHouse to "+tested[:4]+" or newer",
			"ClickHouse %s is too old: the rollup and the snapshots of queries need %d.%d or newer", version, oldestYear,
			oldestMonth)}
	}
	return ok("ClickHouse %s works (%d.%d and newer do; tests run with %s)", version, oldestYear, oldestMonth, tested)
}

func (s Store) migrations(ctx context.Context) ([]finding.Finding, error) {
	state, err := s.State(ctx)
	if err != nil {
		return nil, err
	}
	return judgeState(state), nil
}

func judgeState(state schema.State) []finding.Finding {
	const up = "runlens migrate up"
	one := func(result finding.Result, do, format string, values ...any) []finding.Finding {
		return []finding.Finding{of(result, do, format, values...)}
	}
	switch {
	case state.Current():
		return ok("the store has migration %d, the newest one of this binary", state.Version)
	case state.Works():
		return ok("the store has migration %d of a newer binary, beside which this one works", state.Version)
	case state.Others != "":
		return one(finding.Problem, "give runlens a database of its own", "the database has tables of another program with "+
			"names of runlens' own: %s", state.Others)
	case state.Version == 0:
		return one(finding.Warning, up, "the database has no tables yet; the next serve, worker or ingest makes them")
	case state.Oldest > state.Latest:
		return one(finding.Problem, "upgrade runlens", "the store has migration %d and works with binaries from %d on; this "+
			"one has %d", state.Version, state.Oldest, state.Latest)
	case state.Dirty:
		return one(finding.Problem, up, "migration %d began and did not end", state.Version)
	case state.Older():
		return one(finding.Problem, "use an empty database, make the keys again and copy the records again",
			"the store was made by an unreleased version, from which there is no upgrade")
	default:
		return one(finding.Warning, up, "the store has migration %d, this binary %d; the next serve, worker or ingest "+
			"applies what is pending", state.Version, state.Latest)
	}
}

// clock compares ClickHouse's clock with that of this process. Rows are stamped by ClickHouse's, keys expire by ours.
func (s Store) clock(ctx context.Context) ([]finding.Finding, error) {
	before := time.Now()
	now, err := snapshot.Now(ctx, s.Conn)
	if err != nil {
		return nil, err
	}
	clock := finding.Clock{Of: "ClickHouse", So: "keys expire early or late and asOf is not our time",
		Warning: s.ClockWarning, Problem: s.ClockProblem}
	return []finding.Finding{clock.Judge(now, before, time.Now())}, nil
}

func (s Store) openFiles(ctx context.Context) ([]finding.Finding, error) {
	var text string
	const limit = "SELECT ifNull(max(value), '') FROM system.server_settings WHERE name = 'max_open_files'"
	if err := s.Conn.QueryRow(ctx, limit).Scan(&text); err != nil {
		return nil, err
	}
	files, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return []finding.Finding{of(finding.Unknown, "", "ClickHouse does not say how many files it may have open")}, nil
	}
	return s.judgeOpenFiles(files), nil
}

func (s Store) judgeOpenFiles(files uint64) []finding.Finding {
	switch {
	case files == 0 && s.Embedded:
		return ok("the embedded engine may have as many files open as this process")
	case files == 0:
		return ok("ClickHouse may have as many files open as its host lets it (max_open_files is not set; it reads the " +
			"hard limit of its service)")
	case files <= s.OpenFiles:
		return []finding.Finding{of(finding.Warning, config("limits", "    <max_open_files>262144</max_open_files>"),
			"ClickHouse may have %d files open, which is too few for many parts and connections", files)}
	}
	return ok("ClickHouse may have %d files open", files)
}
