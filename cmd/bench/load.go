package main

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/runlens/runlens/olap/plan"
	"github.com/runlens/runlens/schema"
)

const (
	// Slices of about a third of a month each, fewer for few rows: every insert is a part of its own, and
	// no insert needs much memory.
	maxSlices    = 36
	leastInSlice = 20_000
)

// A rowSet says how rows of one table are made, and of which records.
type rowSet struct {
	columns []string
	fields  func(o, i string) map[string]string
	where   func(o, i string) string // nil for all
}

// selectRows is the statement that makes the rows first (inclusive) to last (exclusive) of a set. Row n
// belongs to organization n % count, so that a slice is a span of time of all organizations.
func (g generator) selectRows(set rowSet, first, last uint64) string {
	fields := set.fields("o", "i")
	selected := make([]string, len(set.columns))
	for k, column := range set.columns {
		selected[k] = fields[column] + " AS v_" + column
	}
	sql := "SELECT " + strings.Join(selected, ", ") +
		fmt.Sprintf(
			" FROM (SELECT toUInt64(number %% %[1]d) AS o, toUInt64(intDiv(number, %[1]d)) AS i FROM numbers(%d, %d))",
			g.count, first, last-first)
	if set.where != nil {
		sql += " WHERE " + set.where("o", "i")
	}
	return sql
}

// runSets are the inserts that make up the runs: first versions, later versions, repeats.
func (g generator) runSets() []rowSet {
	set := func(v version, where func(o, i string) string) rowSet {
		return rowSet{schema.RunColumns, func(o, i string) map[string]string { return g.run(v, o, i) }, where}
	}
	return []rowSet{
		set(firstVersion, nil),
		set(middleVersion, func(o, i string) string { return g.oneIn(middleEvery, "versions", o, i) }),
		set(lastVersion, func(o, i string) string { return g.oneIn(versionsEvery, "versions", o, i) }),
		set(firstVersion, g.repeated),
	}
}

func (g generator) attributionSets() []rowSet {
	return []rowSet{
		{schema.AttributionColumns, g.attribution, nil},
		{schema.AttributionColumns, g.attribution, g.repeated},
	}
}

func (g generator) repeated(o, i string) string { return g.oneIn(repeatEvery, "repeat", o, i) }

// load fills the product's tables through the columns that an insert names, and the naive tables
// with the very same rows. The medium organization is the first, and for a while the only one.
func (b *bench) load(ctx context.Context) error {
	for _, statement := range naiveTables {
		if err := b.store.Conn().Exec(ctx, statement); err != nil {
			return err
		}
	}
	if err := b.loadClasses(ctx, []class{b.world.medium}, "", "naive_"); err != nil {
		return err
	}
	if b.Only.Has("others") {
		if err := b.measureAlone(ctx); err != nil {
			return err
		}
	}
	if err := b.loadClasses(ctx, b.world.others(), "", "naive_"); err != nil {
		return err
	}
	if err := b.countAsLarge(ctx, b.world.above.first()); err != nil {
		return err
	}
	return b.loadMerged(ctx)
}

// countAsLarge makes the product count so many more rows of an organization that the rollup answers for its years.
func (b *bench) countAsLarge(ctx context.Context, organization schema.OrganizationID) error {
	for _, source := range []string{schema.TableRuns, schema.TableAttributions} {
		err := b.store.Conn().Exec(ctx, fmt.Sprintf("INSERT INTO %s SELECT '%s', '%s', %d, now64(3, 'UTC')",
			schema.TableInsertCounters, source, organization, plan.RollupFrom))
		if err != nil {
			return err
		}
	}
	return nil
}

// loadMerged copies the naive tables into others, each of whose partitions is then merged into one part, as it is where
// nothing arrives any more.
func (b *bench) loadMerged(ctx context.Context) error {
	b.say("merging a copy of the naive tables")
	for _, table := range []string{"agents", "runs", "attributions"} {
		naive, merged := "naive_"+table, mergedPrefix+table
		for _, statement := range []string{
			"CREATE TABLE " + merged + " AS " + naive,
			"INSERT INTO " + merged + " SELECT * FROM " + naive +
				" SETTINGS max_partitions_per_insert_block = 0",
			"OPTIMIZE TABLE " + merged + " FINAL",
		} {
			if err := b.store.Conn().Exec(ctx, statement); err != nil {
				return err
			}
		}
	}
	return nil
}

// mergedPrefix begins the names of the naive tables that are merged.
const mergedPrefix = "merged_"

// loadClasses inserts all records of the classes into the tables of every prefix. An insert holds rows of all of
// them, of one span of time.
func (b *bench) loadClasses(ctx context.Context, classes []class, prefixes ...string) error {
	generators := make([]generator, len(classes))
	var agents []string
	var rows uint64
	for k, c := range classes {
		b.say("loading %s: %d × %d runs", c.name, c.count, c.size)
		generators[k] = generator{c, b.world}
		agents = append(agents, generators[k].selectAgents())
		rows += c.rows()
	}
	insert := func(table string, columns, selects []string) error {
		for _, prefix := range prefixes {
			err := b.store.Conn().Exec(ctx, fmt.Sprintf("INSERT INTO %s%s (%s) SETTINGS max_partitions_per_insert_block = 0 %s",
				prefix, table, strings.Join(columns, ", "), strings.Join(selects, " UNION ALL ")))
			if err != nil {
				return fmt.Errorf("%s%s: %w", prefix, table, err)
			}
		}
		return nil
	}
	if err := insert(schema.TableAgents, schema.AgentColumns, agents); err != nil {
		return err
	}
	for _, t := range []struct {
		table string
		sets  func(generator) []rowSet
	}{{schema.TableRuns, generator.runSets}, {schema.TableAttributions, generator.attributionSets}} {
		for k := range t.sets(generators[0]) {
			slices := max(1, min(maxSlices, rows/leastInSlice))
			if k > 0 { // later versions and repeats are few, and spread over several months each
				slices = max(1, slices/6)
			}
			for s := range slices {
				var columns, selects []string
				for _, g := range generators {
					set := t.sets(g)[k]
					columns = set.columns
					selects = append(selects, g.selectRows(set, s*g.rows()/slices, (s+1)*g.rows()/slices))
				}
				if err := insert(t.table, columns, selects); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// selectAgents makes the agents of all organizations of the class.
func (g generator) selectAgents() string {
	agent := fmt.Sprintf("number %% %d", agentsPerOrganization)
	fields := map[string]string{
		"organization_id": g.organizationSQL(fmt.Sprintf("intDiv(number, %d)", agentsPerOrganization)),
		"agent_id":        agentID(agent),
		"name":            "concat('Agent ', toString(" + agent + "))",
		"slug":            "concat('agent-', toString(" + agent + "))",
		"deleted_at":      "NULL",
		"updated_at":      instant(fmt.Sprintf("toInt64(%d)", g.startMillis())),
	}
	selected := make([]string, len(schema.AgentColumns))
	for k, column := range schema.AgentColumns {
		selected[k] = fields[column]
	}
	return fmt.Sprintf("SELECT %s FROM numbers(%d)", strings.Join(selected, ", "), agentsPerOrganization*g.count)
}

// describeData puts into the report what was loaded and in how many parts it lies.
func (b *bench) describeData(ctx context.Context) error {
	for _, table := range []string{schema.TableRuns, schema.TableAttributions, "naive_runs", "naive_attributions"} {
		var t tableData
		err := b.store.Conn().
			QueryRow(ctx, "SELECT sum(rows), count(), uniqExact(partition), sum(bytes_on_disk) FROM system.parts"+
				" WHERE active AND database = currentDatabase() AND table = '"+table+"'").
			Scan(&t.Rows, &t.Parts, &t.Partitions, &t.Bytes)
		if err != nil {
			return err
		}
		t.Table, t.MiB = table, math.Round(float64(t.Bytes)/(1<<20))
		b.report.Data = append(b.report.Data, t)
	}
	return nil
}
