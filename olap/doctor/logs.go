package doctor

import (
	"context"
	"regexp"
	"strings"

	"github.com/runlens/runlens/olap/doctor/finding"
)

// A logTable is one in which ClickHouse keeps a log of its own.
type logTable struct {
	Name  string `ch:"name"`
	Full  string `ch:"engine_full"`
	Rows  uint64 `ch:"rows"`
	Bytes uint64 `ch:"bytes"`
}

// renamed matches the log tables that ClickHouse has put aside because their columns or their configuration changed.
var renamed = regexp.MustCompile(`_log_\d+$`)

func (s Store) logTables(ctx context.Context) ([]finding.Finding, error) {
	const right = "SHOW TABLES ON system.*" // without it, the user sees no table
	if has, err := s.granted(ctx, right); err != nil || !has {
		return []finding.Finding{of(finding.Unknown, grant(s.user(ctx), right), "the user may not see the log tables")}, err
	}
	logs, err := rows[logTable](ctx, s, "SELECT name, engine_full, ifNull(total_rows, 0) AS rows, "+
		"ifNull(total_bytes, 0) AS bytes FROM system.tables WHERE database = 'system' "+
		"AND match(name, '^[a-z0-9_]+_log(_[0-9]+)?$') AND endsWith(engine, 'MergeTree') ORDER BY bytes DESC, name")
	if err != nil {
		return nil, err
	}
	return judgeLogs(logs), nil
}

// judgeLogs names the log tables that grow without end.
func judgeLogs(logs []logTable) []finding.Finding {
	var found []finding.Finding
	var bounds []string
	var all uint64
	for _, l := range logs {
		all += l.Bytes
		switch {
		case renamed.MatchString(l.Name):
			found = append(found, of(finding.Warning, "DROP TABLE system."+identifier(l.Name), "system.%s is what an earlier "+
				"version or configuration of ClickHouse left: %s in %d rows that nothing removes", l.Name, size(l.Bytes), l.Rows))
		case !strings.Contains(l.Full, " TTL "):
			found = append(found, of(finding.Warning, "", "system.%s has no TTL and grows without end: %s in %d rows", l.Name,
				size(l.Bytes), l.Rows))
			bounds = append(bounds, "    <"+l.Name+"><ttl>event_date + INTERVAL 30 DAY DELETE</ttl></"+l.Name+">")
		}
	}
	if len(bounds) > 0 {
		// One file bounds them all; it is printed with the last of them.
		for i := len(found) - 1; i >= 0; i-- {
			if found[i].Do == "" {
				found[i].Do = config("logs", bounds...) + "\nand restart ClickHouse, which then begins new tables: drop the old " +
					"ones, which get a number (system.query_log_0). Where a log has an <engine>, the TTL goes there"
				break
			}
		}
	}
	switch {
	case found != nil:
		return found
	case len(logs) == 0:
		return ok("ClickHouse keeps no log tables")
	}
	return ok("all %d log tables of ClickHouse have a TTL: %s", len(logs), size(all))
}

// config is a file of ClickHouse's configuration.
func config(name string, lines ...string) string {
	return "write /etc/clickhouse-server/config.d/runlens-" + name + ".xml:\n<clickhouse>\n" + strings.Join(lines, "\n") +
		"\n</clickhouse>"
}
