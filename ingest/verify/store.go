package verify

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/schema"
	"github.com/runlens/runlens/schema/sql"
)

// A table says how the rows of a kind are read from the store, versions collapsed.
type table struct {
	name    string
	id      string
	day     string // expression: the UTC day as text
	clock   string // column of the event clock, empty for none
	version string // expression
	text    string // expression: the same text as hasher.row builds
	counts  string // condition: the record is not stored under another clock that counts instead
}

var tables = map[normalize.Kind]table{
	normalize.KindAgent: {
		name: schema.TableAgents, id: "agent_id", day: "''", counts: "true",
		version: "toUnixTimestamp64Milli(tupleElement(latest, 'updated_at'))",
		text: "concat(" + number("tupleElement(latest, 'updated_at')") +
			", ifNull(" + number("tupleElement(latest, 'deleted_at')") + ", '-|'), " + text("tupleElement(latest, 'slug')") +
			", " + text("tupleElement(latest, 'name')") + ", toString(agent_id), '|')",
	},
	normalize.KindRun: {
		name: schema.TableRuns, id: "run_id", clock: "created_at", day: "toString(toDate32(created_at))",
		counts: schema.CurrentRunSQL,
		version: fmt.Sprintf("toInt64(bitShiftRight(state, %d)) - %d", schema.StateVersionShift,
			schema.StateEpochOffsetMillis),
		text: "concat(" + number("created_at") + ", toString(state), '|', toString(tupleElement(record, 'agent_id')), '|'" +
			", ifNull(concat(toString(tupleElement(record, 'parent_run_id')), '|'), '-|'), " +
			text("tupleElement(record, 'initiator_identifier')") + ", " +
			text("tupleElement(record, 'initiator_name')") + ", toString(run_id), '|')",
	},
	normalize.KindAttribution: {
		name: schema.TableAttributions, id: "attribution_id", clock: "occurred_at", day: "toString(toDate32(occurred_at))",
		counts:  schema.RollupOf(schema.TableAttributions).Counts(verified),
		version: "toInt64(0)",
		text: "concat(" + number("occurred_at") + ", toString(run_id), '|', toString(agent_id), '|', " +
			text("user_identifier") + ", " + text("user_name") + ", toString(toInt8(activity_type)), '|', " +
			"toString(toInt8(run_initiation_type)), '|', " + text("toString(source)") + ", toString(attribution_id), '|')",
	},
}

// The sums of all organizations are compared, unless one is named.
var verified = sql.AllOrganizations("whoever verifies may name none")

func number(instant string) string {
	return "concat(toString(toUnixTimestamp64Milli(" + instant + ")), '|')"
}

func text(column string) string {
	return "ifNull(concat(toString(length(" + column + ")), ':', " + column + ", '|'), '-|')"
}

// A Sum is that of the rows of a group in any order: how many there are, and the sum of their
// hashes modulo 2^64.
type Sum struct {
	Count int64  `json:"count"`
	Hash  uint64 `json:"checksum"`
}

// storeSums sums up every group of a kind, of one organization or, where that is empty, of all.
func storeSums(
	ctx context.Context, conn driver.Conn, kind normalize.Kind, organization schema.OrganizationID, sums map[Group]Sum,
) error {
	t := tables[kind]
	summed := sql.Select{
		Columns: []string{"toString(organization_id)", t.day + " AS v_day", "toInt64(count())",
			"sum(xxHash64(" + t.text + "))"},
		From:  verified(t.name).Final(true),
		Where: []string{"{organization:String} IN ('', organization_id)", t.counts},
		Group: []string{"organization_id", "v_day"},
	}
	rows, err := conn.Query(ctx, summed.String(), clickhouse.Named("organization", string(organization)))
	if err != nil {
		return fmt.Errorf("sum up the stored %s records: %w", kind, err)
	}
	defer rows.Close()
	for rows.Next() {
		var o, day string
		var sum Sum
		if err := rows.Scan(&o, &day, &sum.Count, &sum.Hash); err != nil {
			return err
		}
		sums[Group{schema.OrganizationID(o), kind, day}] = sum
	}
	return rows.Err()
}

// storeRows calls visit with every row of a group.
func storeRows(ctx context.Context, conn driver.Conn, g Group, visit func(row)) error {
	t := tables[g.Kind]
	of := sql.Select{
		Columns: []string{t.id, t.version, "xxHash64(" + t.text + ")"}, From: sql.Table(t.name).Final(true),
		Where: []string{t.counts},
	}
	args := []any{clickhouse.Named("organization", string(g.Organization))}
	if t.clock != "" {
		day, err := time.Parse(time.DateOnly, g.Day)
		if err != nil {
			return err
		}
		of.Where = append(of.Where, t.clock+" >= fromUnixTimestamp64Milli({day:Int64}, 'UTC')",
			t.clock+" <= fromUnixTimestamp64Milli({last:Int64}, 'UTC')")
		args = append(args, clickhouse.Named("day", day.UnixMilli()),
			clickhouse.Named("last", day.UnixMilli()+millisPerDay-1))
	}
	rows, err := conn.Query(ctx, of.String(), args...)
	if err != nil {
		return fmt.Errorf("read the stored %s records of %s: %w", g.Kind, g.Day, err)
	}
	defer rows.Close()
	for rows.Next() {
		r := row{Group: g}
		var id uuid.UUID
		if err := rows.Scan(&id, &r.version, &r.hash); err != nil {
			return err
		}
		r.id = id
		visit(r)
	}
	return rows.Err()
}
