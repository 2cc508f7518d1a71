package doctor

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/runlens/runlens/olap/doctor/finding"
	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
)

// A table is a table or a view that the database has.
type table struct {
	Name   string `ch:"name"`
	Engine string `ch:"engine"`
	Full   string `ch:"engine_full"`
	Key    string `ch:"sorting_key"`

	Partition string `ch:"partition_key"`
	Create    string `ch:"create_table_query"`
	Select    string `ch:"as_select"`
}

const ourTables = "SELECT name, engine, engine_full, sorting_key, partition_key, create_table_query, as_select" +
	" FROM system.tables WHERE database = currentDatabase()"

// topology says how many servers and copies there are. That they share their tables was asked when the store was
// opened, and is asked for every new connection.
func (s Store) topology(ctx context.Context) ([]finding.Finding, error) {
	if s.Embedded {
		return ok("the embedded engine: one server, one copy"), nil
	}
	has, err := rows[table](ctx, s, ourTables)
	if err != nil {
		return nil, err
	}
	return judgeTopology(s.Servers, has), nil
}

func judgeTopology(servers int, has []table) []finding.Finding {
	const one = "give the address of one server (--clickhouse-url), the same to every runlens"
	copies := map[string]int{}
	var distributed []string
	for _, t := range has {
		switch {
		case t.Engine == "Distributed":
			distributed = append(distributed, t.Name)
		case strings.HasPrefix(t.Engine, "Replicated"):
			copies["Replicated"]++
		case strings.HasPrefix(t.Engine, "Shared"):
			copies["Shared"]++
		}
	}
	switch {
	case len(distributed) > 0:
		return []finding.Finding{of(finding.Problem, "give the address of a server that has the tables themselves",
			"%s: tables over shards, whose answers are not exact", strings.Join(distributed, ", "))}
	case copies["Replicated"] > 0 && servers > 1:
		return []finding.Finding{of(finding.Problem, one, "the address reaches %d replicas, and one that lags answers with "+
			"what it has", servers)}
	case copies["Replicated"] > 0:
		return []finding.Finding{of(finding.Warning, one, "the tables are replicated: a replica that lags answers with what "+
			"it has, so all must use the same one")}
	case copies["Shared"] > 0:
		return ok("%d servers that share their tables", max(servers, 1))
	case servers > 1:
		return []finding.Finding{of(finding.Problem, one, "the address reaches %d servers that call their tables by one "+
			"UUID, and the tables are neither replicated nor shared: copies of one disk", servers)}
	}
	return ok("one server, one copy")
}

// letters leaves out what ClickHouse adds to an expression, or leaves out of it.
var letters = strings.NewReplacer(" ", "", "\n", "", "(", "", ")", "")

// tables compares the tables with what the migrations make.
func (s Store) tables(ctx context.Context) ([]finding.Finding, error) {
	state, err := s.State(ctx)
	if err != nil {
		return nil, err
	}
	if !state.Works() {
		return []finding.Finding{of(finding.Unknown, "", "the tables are compared once the migrations are applied")}, nil
	}
	has, err := rows[table](ctx, s, ourTables)
	if err != nil {
		return nil, err
	}
	shapes, err := schema.Shapes()
	if err != nil {
		return nil, err
	}
	for i := range shapes {
		if !state.Current() { // a newer binary may have changed it
			shapes[i].Columns, shapes[i].Settings, shapes[i].Select = nil, nil, ""
		}
	}
	return judgeTables(identifier(s.Database), shapes, has), nil
}

func judgeTables(database string, shapes []schema.Shape, has []table) (found []finding.Finding) {
	for _, want := range shapes {
		i := slices.IndexFunc(has, func(t table) bool { return t.Name == want.Name })
		if i < 0 {
			do := "stop all of runlens, run 'runlens migrate down', 'runlens migrate up', and copy the records again"
			if want.Engine == "MaterializedView" {
				do = "stop all of runlens, make it again by its statement in schema/migrations, and start again"
			}
			found = append(found, of(finding.Problem, do, "%s is missing", want.Name))
			continue
		}
		t := has[i]
		switch engine := t.plainEngine(); {
		case engine != plain(want.Engine, t.Engine):
			found = append(found, of(finding.Problem, "make it again with that engine, and copy the records again",
				"%s has the engine %s, and the migrations make it with %s", t.Name, engine, want.Engine))
		case t.Key != want.Key:
			found = append(found, of(finding.Problem, "make it again with that key, and copy the records again",
				"%s is sorted by (%s), and the migrations sort it by (%s)", t.Name, t.Key, want.Key))
		case letters.Replace(t.Partition) != letters.Replace(want.Partition):
			found = append(found, of(finding.Problem, "make it again with that partition key, and copy the records again",
				"%s is partitioned by (%s), and the migrations partition it by (%s): answers are wrong", t.Name, t.Partition,
				want.Partition))
		default:
			found = append(found, t.differences(database, want)...)
		}
		// How long the audit log is kept is the operator's choice.
		if strings.Contains(t.Full, " TTL ") && !want.TTL && t.Name != schema.TableAuditLog {
			found = append(found, of(finding.Problem, "ALTER TABLE "+database+"."+identifier(t.Name)+" REMOVE TTL",
				"%s has a TTL: rows leave it unnoticed, so that answers differ until the rollup is repaired, and a worker copies "+
					"them again", t.Name))
		}
		for _, name := range want.Projections {
			if !strings.Contains(t.Create, "PROJECTION "+name+" (") {
				found = append(found, of(finding.Warning, "ALTER TABLE "+database+"."+identifier(t.Name)+" ADD PROJECTION, with "+
					"its definition in schema/migrations, and ALTER TABLE … MATERIALIZE PROJECTION "+name,
					"%s lacks the projection %s: what it is for reads all rows instead", t.Name, name))
			}
		}
	}
	if found == nil {
		return ok("all %d tables and views are as the migrations made them", len(shapes))
	}
	return found
}

// plainEngine is the engine with its arguments. Of a replicated or shared one, which has arguments of its own, it is
// the name without what says that.
func (t table) plainEngine() string {
	for _, kind := range []string{"Replicated", "Shared"} {
		if name, copied := strings.CutPrefix(t.Engine, kind); copied {
			return name
		}
	}
	if rest, found := strings.CutPrefix(t.Full, t.Engine+"("); found {
		arguments, _, _ := strings.Cut(rest, ")")
		return t.Engine + "(" + arguments + ")"
	}
	return t.Engine
}

// plain is the engine of a migration as plainEngine has it for a table with an engine.
func plain(wanted, engine string) string {
	if strings.HasPrefix(engine, "Replicated") || strings.HasPrefix(engine, "Shared") {
		wanted, _, _ = strings.Cut(wanted, "(")
	}
	return wanted
}

// damage searches for parts that ClickHouse has put aside.
func (s Store) damage(ctx context.Context) ([]finding.Finding, error) {
	parts, err := snapshot.DamagedParts(ctx, s.Conn)
	if err != nil {
		return nil, err
	}
	var found []finding.Finding
	for _, table := range slices.Sorted(maps.Keys(parts)) {
		do := "restore a backup, or copy them again (runlens verify names them) and drop the detached parts, which " +
			"system.detached_parts names:\nALTER TABLE " + identifier(s.Database) + "." + identifier(table) +
			" DROP DETACHED PART 'NAME' SETTINGS allow_drop_detached = 1"
		found = append(found, of(finding.Problem, do,
			"ClickHouse found parts of a table damaged and put them aside: rows are missing (%s: %.0f)", table, parts[table]))
	}
	if found == nil {
		return ok("no part was put aside as damaged"), nil
	}
	return found, nil
}
