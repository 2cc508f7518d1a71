package doctor

import (
	"context"
	"slices"
	"strings"

	"github.com/runlens/runlens/olap/doctor/finding"
)

// A right is what a user of ClickHouse needs, and what for.
type right struct {
	privilege string
	on        string // empty for the tables of the database
	need      string
}

const (
	everything  = "every command"
	migrations  = "the migrations, which serve, worker and ingest apply when they start, and migrate up"
	maintenance = "maintenance by serve, rollup rebuild"

	laterMigrations = "ALTER COLUMN, ALTER INDEX, ALTER PROJECTION, ALTER SETTINGS, ALTER VIEW MODIFY QUERY"
)

// rights are those of a user that can run every command but migrate down. A test runs the commands with these alone.
var rights = []right{
	{"SELECT", "", everything},
	{"INSERT", "", "everything that stores: ingest, worker, serve, keys, purge"},
	{"OPTIMIZE", "", maintenance},
	{"ALTER DELETE", "", "purge, repairs of the rollup, a worker with --delete-missing"},
	{"ALTER UPDATE", "", "purge"},
	{"CREATE TABLE", "", migrations},
	{"CREATE VIEW", "", migrations},
	{laterMigrations, "", "the migrations of later versions"},
	{"TABLE ENGINE", "MergeTree", migrations},
	{"TABLE ENGINE", "ReplacingMergeTree", migrations},
	{"TABLE ENGINE", "AggregatingMergeTree", migrations},
	{"TABLE ENGINE", "CollapsingMergeTree", migrations},
	{"SELECT", "system.processes", "every question: the inserts in flight"},
	{"SELECT", "system.parts", "API keys, questions, maintenance"},
	{"SELECT", "system.detached_parts", "the search for damaged parts by serve"},
	{"SELECT", "system.mutations", "purge, the first build of the rollup and repairs of it"},
	{"SELECT", "system.merge_tree_settings", "maintenance"},
	{"SELECT", "system.events", "the cache of answers in serve: without it no answer is cached"},
	{"SELECT", "system.tables", "the cache of answers in serve: without it no answer is cached"},
}

// place is what the right is on, in SQL.
func (r right) place(database string) string {
	if r.on == "" {
		return identifier(database) + ".*"
	}
	return r.on
}

func (r right) sql(database string) string { return r.privilege + " ON " + r.place(database) }

// grant is the statement that gives rights to a user.
func grant(user string, rights ...string) string {
	return "GRANT " + strings.Join(rights, ", ") + " TO " + user
}

func (s Store) grants(ctx context.Context) ([]finding.Finding, error) {
	all := Rights(s.Database)
	has, err := s.granted(ctx, strings.Join(all, ", "))
	if err != nil {
		return nil, err
	}
	if has {
		return ok("the user has what every command needs"), nil
	}
	var found []finding.Finding
	for i, r := range rights {
		if has, err = s.granted(ctx, all[i]); err != nil {
			return found, err
		}
		if has {
			continue
		}
		result := finding.Problem
		if slices.Contains(optional, r.on) || r.privilege == laterMigrations {
			result = finding.Warning
		}
		found = append(found, of(result, grant(s.user(ctx), all[i]), "the user lacks %s on %s, for %s", r.privilege,
			r.place(s.Database), r.need))
	}
	if found == nil {
		return ok("the user has what every command needs"), nil
	}
	return found, nil
}

// optional are the tables without which everything is answered.
var optional = []string{"system.events", "system.tables", "system.detached_parts"}

// granted reports whether the user has rights, as GRANT names them.
func (s Store) granted(ctx context.Context, rights string) (has bool, err error) {
	var yes uint8
	err = s.Conn.QueryRow(ctx, "CHECK GRANT "+rights).Scan(&yes)
	return yes == 1, err
}

// Rights returns what a user of a database needs to run every command but migrate down, as GRANT and CHECK GRANT name
// it.
func Rights(database string) []string {
	all := make([]string, len(rights))
	for i, r := range rights {
		all[i] = r.sql(database)
	}
	return all
}
