package usage

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/schema"
	"github.com/runlens/runlens/schema/sql"
)

// A Grouping is what questions have in common that are summed up together.
type Grouping string

// The groupings.
const (
	ByOrganization Grouping = "organization"
	ByKey          Grouping = "key"
	ByShape        Grouping = "shape"    // without refusals that have none
	ByQuestion     Grouping = "question" // organization and shape
	ByRefusal      Grouping = "refusal"  // refusals only
)

// A groupColumn is the name of a column of a grouping, and its SQL.
type groupColumn struct{ name, sql string }

var (
	organizationColumn = groupColumn{"organization_id", "organization_id"}

	shapeColumns = []groupColumn{
		{"model", "model"},
		{"metrics", "arrayStringConcat(metrics, ',')"},
		{"dimensions", "arrayStringConcat(dimensions, ',')"},
		{"filters", "arrayStringConcat(filters, ', ')"},
		{"days", "toString(days)"},
		{"timezone", "timezone"},
		{"limit", "toString(row_limit)"},
	}

	groupings = map[Grouping]struct {
		columns []groupColumn
		where   string
	}{
		ByOrganization: {[]groupColumn{organizationColumn}, "true"},
		ByKey:          {[]groupColumn{organizationColumn, {"key_id", "key_id"}}, "true"},
		ByShape:        {shapeColumns, "model != ''"},
		ByQuestion:     {append([]groupColumn{organizationColumn}, shapeColumns...), "model != ''"},
		ByRefusal:      {[]groupColumn{organizationColumn, {"code", "code"}, {"limit_hit", "limit_hit"}}, "code != ''"},
	}
)

// Columns are the names of the columns that distinguish the groups.
func (g Grouping) Columns() (names []string) {
	for _, c := range groupings[g].columns {
		names = append(names, c.name)
	}
	return names
}

// A Selection says which questions are summed up, and how.
type Selection struct {
	By             Grouping
	OrganizationID schema.OrganizationID // empty for all
	KeyID          string                // empty for all
	Since          time.Time             // inclusive
	Slowest        bool                  // order by P95Ms, not by Questions; the greatest first
	Limit          int                   // the most groups
}

// A Summary is what the questions of a group took together. Refusals count in Questions too.
type Summary struct {
	Group []string `json:"group" ch:"shown"` // in the order of Columns

	Questions uint64 `json:"questions" ch:"questions"`
	Refused   uint64 `json:"refused" ch:"refused"`
	Limited   uint64 `json:"limited" ch:"limited"` // of the refused, those that hit a limit

	RowsRead    uint64   `json:"rows_read" ch:"all_rows"`
	BytesRead   uint64   `json:"bytes_read" ch:"all_bytes"`
	ProcessorMs *float64 `json:"processor_ms" ch:"processor"` // nil where ClickHouse reported none
	// Of answers, from the head of the request to the end; nil without answers.
	MeanMs *float64 `json:"mean_ms" ch:"mean"`
	P95Ms  *float64 `json:"p95_ms" ch:"p95"`
	MaxMs  *float64 `json:"max_ms" ch:"longest"`
}

// Summarize reads the logs of all the stores of a deployment. A group is of one store: where it names no organization
// (ByShape), there may be one of each.
func Summarize(ctx context.Context, s Selection, conns ...driver.Conn) ([]Summary, error) {
	var all []Summary
	for _, conn := range conns {
		summaries, err := summarize(ctx, conn, s)
		if err != nil {
			return nil, err
		}
		all = append(all, summaries...)
	}
	if len(conns) > 1 {
		slices.SortStableFunc(all, func(a, b Summary) int { return cmp.Compare(s.rank(b), s.rank(a)) })
	}
	return all[:min(len(all), s.Limit)], nil
}

// rank is what the greatest of comes first.
func (s Selection) rank(of Summary) float64 {
	if !s.Slowest {
		return float64(of.Questions)
	}
	if of.P95Ms == nil {
		return -1
	}
	return *of.P95Ms
}

func summarize(ctx context.Context, conn driver.Conn, s Selection) ([]Summary, error) {
	grouping, order := groupings[s.By], "questions"
	if s.Slowest {
		order = "p95"
	}
	var group []string
	for _, c := range grouping.columns {
		group = append(group, "toString("+c.sql+")")
	}
	read := sql.Table
	if s.OrganizationID == "" {
		read = sql.AllOrganizations("questions of all of them are summed up")
	}
	summary := sql.Select{
		Columns: []string{"[" + strings.Join(group, ", ") + "] AS shown", "sum(l.questions) AS questions",
			"sumIf(l.questions, code != '') AS refused", "sumIf(l.questions, limit_hit != '') AS limited",
			"sum(rows_read) AS all_rows", "sum(bytes_read) AS all_bytes", "sum(processor_us) / 1000 AS processor",
			"avgOrNullIf(took_us, code = '') / 1000 AS mean",
			"quantileExactOrNullIf(0.95)(took_us, code = '') / 1000 AS p95",
			"maxOrNullIf(took_us, code = '') / 1000 AS longest"},
		From: read(schema.TableUsageLog).As("l"),
		Where: []string{grouping.where, "at >= fromUnixTimestamp64Milli({since:Int64}, 'UTC')",
			"({key:String} = '' OR key_id = {key:String})"},
		Group: []string{"shown"}, Order: []string{order + " DESC", "shown"}, Limit: "{limit:Int64}",
	}
	var summaries []Summary
	err := conn.Select(ctx, &summaries, summary.String(),
		clickhouse.Named("since", s.Since.UnixMilli()), clickhouse.Named("organization", string(s.OrganizationID)),
		clickhouse.Named("key", s.KeyID), clickhouse.Named("limit", int64(s.Limit)))
	if err != nil {
		return nil, fmt.Errorf("usage: summarize: %w", err)
	}
	return summaries, nil
}
