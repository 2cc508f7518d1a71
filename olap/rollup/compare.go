package rollup

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/schema"
	"github.com/runlens/runlens/schema/sql"
)

// A Difference is where the rollup is not what its source says.
type Difference struct {
	Table string `json:"table"`
	// Projection is the one whose sums differ from those of its own table's rows; empty where the rows themselves differ.
	Projection   string `json:"projection,omitempty" ch:"part"`
	Organization string `json:"organization_id" ch:"organization"`
	Span         string `json:"span"` // of the event clock in UTC: year and quarter, 2026-Q1
	// by the source; of a projection by the rows; of the initiator keys those that rows have
	Records int64 `json:"records" ch:"records"`
	// by the table or projection; with as many records their contents differ
	InRollup int64 `json:"in_rollup" ch:"in_rollup"`
}

// compare compares a section of the rollup with its source, in one statement and one snapshot of each table:
//
//   - the rows with the source: numbers, and sums of checksums over all columns, of the records that are chosen;
//   - the columns that a row derives from others with the expressions that define them;
//   - each projection with the rows: sums of the products of a hash of the group and the group's sums. They do not
//     depend on how rows are merged into groups or parts, so that no merge changes them;
//   - the table initiator_keys with the rows: each key with its name is there, and no key represents another text;
//   - the marks of shared initiator keys with the table initiator_keys.
//
// Checksums are sums of 64 bits of a hash, so that a difference of two is zero by chance once in 10^19 comparisons.
// id names the statement in ClickHouse; empty for any name.
func compare(
	ctx context.Context, conn driver.Conn, s section, records chosen, watermark time.Time, id string,
) (found []Difference, err error) {
	projections, err := completeProjections(ctx, conn, s.table)
	if err != nil {
		return nil, err
	}
	parts := sql.Union(records(s))
	for _, r := range projections {
		parts = append(parts, s.ofProjection(r))
	}
	if len(projections) > 0 {
		parts = append(parts, s.ofRows(projections))
	}
	if s.table.Key("initiator_key") != nil {
		parts = append(parts, s.ofNames(), s.ofSharedKeys())
	}
	differences := sql.Select{
		Columns: []string{"organization", "part", "sum(expected) AS records", "sum(found) AS in_rollup"},
		From:    sql.Query(parts),
		Group:   []string{"organization", "part"},
		Having:  "sum(expected) != sum(found) OR sum(broken) != 0 OR sum(checksum) != 0",
		Order:   []string{"organization", "part"},
	}
	err = conn.Select(background(ctx, id), &found, differences.String(),
		append(s.args(), clickhouse.Named("until", watermark.UnixMilli()), clickhouse.Named("partition", s.id()))...)
	if err != nil {
		return nil, fmt.Errorf("rollup: compare %s %s: %w", s.table.Table, s.span(), err)
	}
	for i := range found {
		d := &found[i]
		d.Table, d.Span = s.table.Table, s.span()
		if d.Projection == schema.TableInitiatorKeys || d.Projection == schema.TableSharedKeys {
			d.Table, d.Projection = d.Projection, ""
		}
	}
	return found, nil
}

// selected are the columns of every part of a comparison.
func selected(part, expected, found, broken, checksum string) []string {
	return []string{"toString(organization_id) AS organization", "'" + part + "' AS part",
		"toInt64(" + expected + ") AS expected", "toInt64(" + found + ") AS found", "toInt64(" + broken + ") AS broken",
		"toInt64(" + checksum + ") AS checksum"}
}

// chosen are the parts of a comparison that compare rows with the source.
type chosen func(section) []sql.Select

// refreshedRecords compares the records none of whose rows was stored after the watermark: of those the rollup says
// what the source says.
func refreshedRecords(s section) []sql.Select {
	chosen := sql.NotIn(sql.Select{
		Columns: s.table.RecordKey(), From: compared(s.table.Source), Where: []string{s.where(), s.since()},
	}, s.table.RecordKey()...)
	return []sql.Select{s.ofSource(chosen), s.ofRollup(chosen)}
}

// allRecords compares all of them: of the others the rollup and the delta say together what the source says. A row that
// is stored while the statement begins may be in one of both alone, and then differs without any damage.
func allRecords(s section) []sql.Select {
	return []sql.Select{s.ofSource("true"), s.ofRollup("true"), s.ofDelta()}
}

// since is the condition that a row of the source was stored after the watermark.
func (s section) since() string {
	return s.table.StoredAfter("fromUnixTimestamp64Milli({until:Int64}, 'UTC')")
}

// hash is the checksum of a record, whose columns are SQL. It is of a tuple: of several values one of which is null it
// would be null.
func (s section) hash(columns []string) string {
	columns = slices.Concat(s.table.RecordKey(), []string{"first_stored_at"}, columns)
	return "reinterpretAsInt64(cityHash64(tuple(" + strings.Join(columns, ", ") + ")))"
}

func (s section) ofSource(chosen string) sql.Select {
	ofSource, _, _ := s.table.Lists(len(s.table.Columns))
	return sql.Select{
		Columns: selected("", "count()", "0", "0", "sum("+s.hash(ofSource)+")"),
		From:    compared(s.table.Source).Final(true),
		Where:   []string{s.where(), s.table.Counts(compared), chosen}, Group: []string{"organization_id"},
	}
}

func (s section) ofRollup(chosen string) sql.Select {
	_, ofRollup, _ := s.table.Lists(len(s.table.Columns))
	broken := "countIf(NOT (" + strings.Join(s.derived(), " AND ") + "))"
	return sql.Select{
		Columns: selected("", "0", "sum(sign)", broken, "-sum(sign * "+s.hash(ofRollup)+")"),
		From:    compared(s.table.Table), Where: []string{s.where(), chosen}, Group: []string{"organization_id"},
	}
}

func (s section) ofDelta() sql.Select {
	n := len(s.table.Columns)
	_, _, names := s.table.Lists(n)
	changed := s.table.Changed(schema.Reading{
		Read: compared, Known: []string{s.where()}, Stored: []string{s.where(), s.since(), s.table.Counts(compared)},
	}, n)
	return sql.Select{
		Columns: selected("", "0", "sum(sign)", "0", "-sum(sign * "+s.hash(names)+")"),
		From:    sql.Query(s.table.Signed(changed, n, s.table.RecordKey()...)), Group: []string{"organization_id"},
	}
}

// derived are the conditions that the columns which a row derives from others are what defines them.
func (s section) derived() (conditions []string) {
	for _, r := range s.table.Projections {
		condition := fmt.Sprintf("%s = floor(toUnixTimestamp64Milli(%s) / %d)", r.Time, s.table.Clock, r.SpanMillis)
		if !slices.Contains(conditions, condition) {
			conditions = append(conditions, condition)
		}
	}
	for _, k := range s.table.Keys {
		if k.SQL != k.Name {
			conditions = append(conditions, k.Name+" = "+s.overRows(k.SQL))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.table.Sums)) {
		conditions = append(conditions, name+" = "+s.table.Sums[name])
	}
	return conditions
}

// overRows is SQL over Columns as SQL over rows of the rollup.
func (s section) overRows(expression string) string {
	for _, c := range s.table.Columns {
		if c.InRollup != "" {
			expression = replaceName(expression, c.Name, c.InRollup)
		}
	}
	return expression
}

// replaceName puts an expression in the place of a column.
func replaceName(in, name, expression string) string {
	return regexp.MustCompile(`\b`+name+`\b`).ReplaceAllLiteralString(in, expression)
}

// ofRows are the sums of projections by the rows. No projection has the column sign, so that ClickHouse reads rows.
func (s section) ofRows(projections []schema.Projection) sql.Select {
	weight := s.weighed(func(name string) string { return s.table.Sums[name] })
	var sums []string
	for _, r := range projections {
		sums = append(sums, "('"+r.Name+"', toInt64(sum("+s.table.Sums[s.table.Records]+")), "+
			"sum("+groupHash(r)+" * ("+weight+")))")
	}
	rows := sql.Select{
		Columns: []string{"organization_id", "arrayJoin([" + strings.Join(sums, ", ") + "]) AS sums"},
		From:    compared(s.table.Table), Where: []string{ofOrganizations, ofPartition}, Group: []string{"organization_id"},
	}
	return sql.Select{
		Columns: []string{"toString(organization_id)", "tupleElement(sums, 1)", "tupleElement(sums, 2)", "0", "0",
			"tupleElement(sums, 3)"},
		From: sql.Query(rows),
	}
}

// ofProjection are the same by the projection.
func (s section) ofProjection(r schema.Projection) sql.Select {
	sum := func(name string) string { return "finalizeAggregation(`sum(" + name + ")`)" }
	start, end := s.bounds()
	return sql.Select{
		Columns: selected(r.Name, "0", "sum("+sum(s.table.Records)+")", "0",
			"-sum("+groupHash(r)+" * ("+s.weighed(sum)+"))"),
		From: compared("mergeTreeProjection(currentDatabase(), " + s.table.Table + ", " + r.Name + ")"),
		Where: []string{ofOrganizations, ofPartition, fmt.Sprintf("%s BETWEEN %d AND %d", r.Time,
			schema.SpanOf(start.UnixMilli(), r.SpanMillis), schema.SpanOf(end.UnixMilli()-1, r.SpanMillis))},
		Group: []string{"organization_id"},
	}
}

const ofPartition = "_partition_id = {partition:String}"

func groupHash(r schema.Projection) string {
	return "reinterpretAsInt64(cityHash64(tuple(" + strings.Join(append([]string{r.Time}, r.Keys...), ", ") + ")))"
}

// weighed is the sum of all sums of a row or a group, each times a number of its own.
func (s section) weighed(sum func(name string) string) string {
	var terms []string
	for _, name := range slices.Sorted(maps.Keys(s.table.Sums)) {
		terms = append(terms, "toInt64("+sum(name)+") * reinterpretAsInt64(cityHash64('"+name+"'))")
	}
	return strings.Join(terms, " + ")
}

// ofNames selects keys of rows without a name, and names that are not those of their keys.
func (s section) ofNames() sql.Select {
	key := []string{"organization_id", "initiator_key", "initiator_name"}
	rows := sql.Union{
		{
			Columns: append(slices.Clone(key), "1 AS of_rows", "0 AS right", "0 AS misnamed"),
			From:    compared(s.table.Table), Where: []string{s.where(), "initiator_key != 0"},
		},
		{
			Columns: append(slices.Clone(key), "0", "NOT ("+misnamed+")", misnamed),
			From:    compared(schema.TableInitiatorKeys), Where: []string{ofOrganizations},
		},
	}
	keys := sql.Select{
		Columns: append(slices.Clone(key), "max(of_rows) AS has", "max(right) AS named", "max(misnamed) AS wrong"),
		From:    sql.Query(rows), Group: key,
	}
	return sql.Select{
		Columns: selected(schema.TableInitiatorKeys, "sum(has)", "sum(least(has, named))", "sum(wrong)", "0"),
		From:    sql.Query(keys), Group: []string{"organization_id"},
	}
}

// misnamed is the condition that the text of a row of initiator_keys is not that of its key.
var misnamed = "initiator_key != " + replaceName(schema.InitiatorKeySQL, "initiator",
	strings.Replace(schema.InitiatorOfSQL, "?", "initiator_identifier", 1))

// completeProjections are those projections that every part of a table has. Of the others queries read rows.
func completeProjections(
	ctx context.Context, conn driver.Conn, t *schema.RollupTable,
) (complete []schema.Projection, err error) {
	var names []string
	err = conn.QueryRow(ctx, "SELECT groupArrayIntersect(projections) FROM system.parts"+
		" WHERE active AND database = currentDatabase() AND table = {table:String}",
		clickhouse.Named("table", t.Table)).Scan(&names)
	if err != nil {
		return nil, fmt.Errorf("rollup: list projections: %w", err)
	}
	for _, r := range t.Projections {
		if slices.Contains(names, r.Name) {
			complete = append(complete, r)
		}
	}
	return complete, nil
}

// background is a context for a statement of the check: one thread and bounded memory, so that queries are not
// disturbed. id names the statement; empty for any name.
func background(ctx context.Context, id string) context.Context {
	settings := clickhouse.Settings{
		"max_threads":                        1,
		"max_memory_usage":                   2 << 30,
		"max_bytes_before_external_group_by": 512 << 20,
	}
	maps.Copy(settings, schema.ReadSettings)
	id = cmp.Or(id, "runlens-check-"+rand.Text())
	return clickhouse.Context(ctx, clickhouse.WithQueryID(id), clickhouse.WithSettings(settings))
}
