package clickhouse

import "github.com/ClickHouse/clickhouse-go/v2"

// pinned are the settings of every statement, whatever the user's profile and the URL say: with another value
// ClickHouse would answer a statement with status 200 and other rows. A profile that forbids a user to change one of
// them has statements refused, unless it has the same value.
var pinned = clickhouse.Settings{
	"async_insert": 0, // an acknowledged insert is stored, and one block stays one part
	// An insert whose rows could not be counted fails, and is repeated: what is cached is valid while no count changes.
	"materialized_views_ignore_errors": 0,
	// What is in flight is known by the text of the insert, and a text that is longer is not listed.
	"log_queries_cut_to_length": 100_000,

	// What exceeds a limit is refused, and what came before it is not the answer.
	"read_overflow_mode":         "throw",
	"read_overflow_mode_leaf":    "throw",
	"group_by_overflow_mode":     "throw",
	"sort_overflow_mode":         "throw",
	"result_overflow_mode":       "throw",
	"timeout_overflow_mode":      "throw",
	"timeout_overflow_mode_leaf": "throw",
	"set_overflow_mode":          "throw",
	"join_overflow_mode":         "throw",
	"distinct_overflow_mode":     "throw",
	"transfer_overflow_mode":     "throw",

	// Nothing but the statement says which rows it selects.
	"limit":                    0,
	"offset":                   0,
	"extremes":                 0, // over the native protocol the driver takes the extremes for rows
	"additional_result_filter": "",
	"additional_table_filters": "{}",
	"use_query_cache":          0, // an answer of before
	// Optimizations that made answers wrong and are worth nothing here (schema/decisions/optimizations.md): what an
	// earlier statement found in a granule, and a projection that was not chosen, leave rows out that belong to the
	// answer; compiled expressions compute other values from the fourth statement on; a join is taken for another kind
	// of join, or its rows are filtered before; the columns of the rows of a LIMIT are read afterwards.
	"use_query_condition_cache":                        0,
	"optimize_use_projection_filtering":                0,
	"compile_expressions":                              0,
	"query_plan_convert_any_join_to_semi_or_anti_join": 0,
	"query_plan_convert_outer_join_to_inner_join":      0,
	"use_join_disjunctions_push_down":                  0,
	"enable_join_runtime_filters":                      0,
	"query_plan_optimize_lazy_materialization":         0,
	// All other optimizations that are younger than the oldest ClickHouse that works are off too, and so will be those
	// to come: a server of any version has its defaults.
	"compatibility": "26.1",
	// The other replicas of a cluster may have tables of the same name, and rows of their own.
	"enable_parallel_replicas": 0,

	// What a statement means.
	"dialect": "clickhouse",
	"empty_result_for_aggregation_by_empty_set": 0,
	"prefer_column_name_to_alias":               0,
	"join_default_strictness":                   "ALL",
	"aggregate_functions_null_for_empty":        0, // the rollup would never be refreshed
	"data_type_default_nullable":                0, // no table could be made
	// Otherwise api_keys could not be made, and the rollup could not be compared. (The compatibility above does not change
	// what a profile sets.)
	"use_variant_as_common_type": 1,
	"enable_analyzer":            1,

	// What the driver understands of a table before an insert.
	"describe_compact_output":          0,
	"describe_include_subcolumns":      0,
	"describe_include_virtual_columns": 0,
}
