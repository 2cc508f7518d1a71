package doctor

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/runlens/runlens/olap/doctor/finding"
)

// A setting is one of ClickHouse as a statement of ours has it: from the user's profile, or sent with the statement.
type setting struct {
	Name    string `ch:"name"`
	Value   string `ch:"value"`
	Default string `ch:"default"`
	Locked  bool   `ch:"locked"` // the user may not change it
	Max     string `ch:"most"`   // empty for none
}

// refusing are settings that have ClickHouse refuse statements of ours, whatever their value above 0 is.
var refusing = []string{"force_index_by_date", "force_primary_key", "force_optimize_projection",
	"force_data_skipping_indices"}

// limiting are settings that have ClickHouse refuse a statement that needs more, if they are above 0. What a limit
// would cut off is never taken for an answer: every statement is sent with the overflow modes throw.
var limiting = []string{"max_rows_to_read", "max_bytes_to_read", "max_rows_to_read_leaf", "max_bytes_to_read_leaf",
	"max_result_rows", "max_result_bytes", "max_rows_to_group_by", "max_rows_in_join", "max_bytes_in_join",
	"max_rows_in_set", "max_bytes_in_set", "max_rows_in_distinct", "max_bytes_in_distinct", "max_rows_to_sort",
	"max_bytes_to_sort", "max_columns_to_read", "max_temporary_columns", "max_temporary_non_const_columns"}

// sent are settings that statements are sent with, besides those of every connection, and the greatest value of each
// that is a number.
var sent = map[string]uint64{"max_threads": 1, "max_memory_usage": 4 << 30,
	"max_bytes_before_external_group_by": 2 << 30,
	"max_execution_time":                 0, "log_comment": 0, "optimize_on_insert": 0, "insert_deduplication_token": 0,
	"max_partitions_per_insert_block": 0, "min_insert_block_size_rows": 1 << 32, "max_insert_block_size": 1 << 32,
	"mutations_sync": 2, "allow_nondeterministic_mutations": 1, "do_not_merge_across_partitions_select_final": 1,
	"optimize_functions_to_subcolumns": 0, "optimize_and_compare_chain": 0, "query_plan_join_swap_table": 0,
	"enable_shared_storage_snapshot_in_query": 1, "cancel_http_readonly_queries_on_client_close": 1}

// memory are limits of memory, of which at least enoughMemory lets all but the largest questions pass.
var memory = []string{"max_memory_usage", "max_memory_usage_for_user"}

const enoughMemory = 1 << 30

func (s Store) settings(ctx context.Context) ([]finding.Finding, error) {
	names := slices.Concat(refusing, limiting, memory, []string{"readonly", "max_execution_time"})
	for name := range sent {
		names = append(names, name)
	}
	has, err := rows[setting](ctx, s, "SELECT name, value, default, toBool(readonly) AS locked, ifNull(max, '') AS most "+
		"FROM system.settings WHERE name IN ('"+strings.Join(names, "', '")+"') ORDER BY name")
	if err != nil {
		return nil, err
	}
	return judgeSettings(s.user(ctx), has), nil
}

func judgeSettings(user string, has []setting) (found []finding.Finding) {
	for _, one := range has {
		f := one.judge()
		if f.Result == finding.OK {
			continue
		}
		f.Do = "ALTER USER " + user + " SETTINGS " + one.Name + " = " + one.literal() +
			"\nor take it out of the profile of the user, and out of --clickhouse-url"
		found = append(found, f)
	}
	if found == nil {
		return ok("no setting of the user's profile fails statements of ours; those that could change an answer are sent " +
			"with every statement")
	}
	return found
}

// literal is the default of the setting, in SQL.
func (s setting) literal() string {
	if _, err := strconv.ParseFloat(s.Default, 64); err == nil {
		return s.Default
	}
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s.Default) + "'"
}

func (s setting) judge() finding.Finding {
	value, _ := strconv.ParseUint(s.Value, 10, 64)
	most, bounded := sent[s.Name]
	limit, err := strconv.ParseUint(s.Max, 10, 64)
	switch {
	case s.Name == "readonly" && value != 0:
		return of(finding.Problem, "", "the user may only read (readonly = %s), and every command but explain stores",
			s.Value)
	case bounded && s.Locked:
		return of(finding.Problem, "", "the user may not change %s, which statements are sent with, so they are refused",
			s.Name)
	case bounded && err == nil && limit < most:
		return of(finding.Problem, "", "the user may set %s to %s at most, and statements are sent with %d, so they are "+
			"refused", s.Name, s.Max, most)
	case slices.Contains(refusing, s.Name) && s.Value != "0" && s.Value != "":
		return of(finding.Problem, "", "%s = %s has ClickHouse refuse statements of ours", s.Name, s.Value)
	case slices.Contains(limiting, s.Name) && value > 0:
		return of(finding.Warning, "", "%s = %s has ClickHouse refuse questions that need more", s.Name, s.Value)
	case slices.Contains(memory, s.Name) && value > 0 && value < enoughMemory:
		return of(finding.Warning, "", "%s is %s, which is too little for an ingest, a migration or maintenance of many rows",
			s.Name, size(value))
	}
	return finding.Finding{Result: finding.OK}
}
