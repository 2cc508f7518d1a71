package doctor_test

import (
	"encoding/json"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/doctor/finding"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/query"
	"github.com/runlens/runlens/schema"
)

// Whatever a profile or a URL sets, a question is answered rightly or refused. Three people ran five runs, of which two
// are completed and one has failed.
func TestNoSettingChangesAnAnswer(t *testing.T) {
	plain := migrated(t, "tester")
	var records olaptest.Records
	people := []string{"ada@example.com", "ada@example.com", "bob@example.org", "bob@example.org", "eve@example.net"}
	for i, status := range []string{"COMPLETED", "COMPLETED", "FAILED", "RUNNING", "PENDING"} {
		at := time.Date(2026, time.Month(1+i), 1, 23, 30, 0, 0, time.UTC)
		records.Runs = append(records.Runs, olaptest.Run{Organization: "settings", ID: olaptest.ID(i),
			AgentID: olaptest.ID(9), Kind: "agent", Status: status, Identifier: &people[i], CreatedAt: at, UpdatedAt: at})
	}
	olaptest.Load(t, plain.Conn(), records)
	questions := map[string][][]any{
		`"metrics": ["run_count", "run_success_rate", "unique_initiator_count"]`: {{5., 2. / 3, 3.}},
		`"metrics": ["run_count"], "dimensions": ["day"]`: {{"2026-01-02", 1.}, {"2026-02-02", 1.}, {"2026-03-02", 1.},
			{"2026-04-02", 1.}, {"2026-05-02", 1.}},
		`"metrics": ["run_count"], "filters": [{"member": "user_identifier", "op": "eq", "value": "nobody"}]`: {{0.}},
	}
	for _, scheme := range []string{"http", "clickhouse"} {
		lines := slices.Concat(changing, []string{""})
		if scheme == "http" {
			lines = slices.Concat(lines, harmless)
		}
		for _, line := range lines {
			t.Run(scheme+" "+line, func(t *testing.T) {
				settings, err := url.ParseQuery(line)
				if err != nil {
					t.Fatal(err)
				}
				engine := olap.NewEngine(as(t, scheme, "tester", settings).Conn(), []byte("secret"))
				for question, want := range questions {
					ask(t, engine, "settings", `"model": "agent_runs", `+question, want, line == "")
				}
			})
		}
	}
}

// Optimizations that made answers wrong are off, whatever a profile or a URL sets, and so are those that ClickHouse
// switched on by default since 26.1. A setting that a server does not know is not asked for.
func TestOptimizationsAreOff(t *testing.T) {
	theNode(t)
	names := []string{"use_query_condition_cache", "optimize_use_projection_filtering", "compile_expressions",
		"query_plan_convert_any_join_to_semi_or_anti_join", "query_plan_convert_outer_join_to_inner_join",
		"use_join_disjunctions_push_down", "enable_join_runtime_filters", "query_plan_optimize_lazy_materialization"}
	on := url.Values{}
	for _, name := range names {
		on.Set(name, "1")
	}
	young := "SELECT count(), countIf(value != '0') FROM system.settings WHERE name IN ('use_top_k_dynamic_filtering'," +
		" 'allow_aggregate_partitions_independently', 'optimize_truncate_order_by_after_group_by_keys'," +
		" 'optimize_redundant_comparisons', 'optimize_mutations_with_partition_pruning')"
	for _, scheme := range []string{"http", "clickhouse"} {
		conn := as(t, scheme, "tester", on).Conn()
		for _, name := range names {
			var value bool
			if err := conn.QueryRow(t.Context(), "SELECT toBool(getSetting('"+name+"'))").Scan(&value); err != nil || value {
				t.Errorf("%s: %s is %v, %v", scheme, name, value, err)
			}
		}
		var known, switchedOn uint64
		if err := conn.QueryRow(t.Context(), young).Scan(&known, &switchedOn); err != nil || known == 0 || switchedOn > 0 {
			t.Errorf("%s: of %d young optimizations %d are on, %v", scheme, known, switchedOn, err)
		}
	}
}

// ask wants an answer, or a refusal where that may be.
func ask(
	t *testing.T, engine *olap.Engine, organization schema.OrganizationID, question string, want [][]any, mustAnswer bool,
) {
	t.Helper()
	parsed, err := query.Parse([]byte(`{"range": {"start": "2026-01-01", "end": "2026-12-31",
		"timezone": "Europe/Stockholm"}, ` + question + `}`))
	if err != nil {
		t.Fatal(err)
	}
	result, err := engine.Run(t.Context(), olap.Request{
		Access: schema.WholeOrganization(organization), QueryID: uuid.New(), Query: parsed,
	})
	if err != nil {
		if t.Log(err); mustAnswer {
			t.Fail()
		}
		return
	}
	var got struct{ Rows [][]any }
	if err := json.Unmarshal(result.AppendJSON(nil), &got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got.Rows, want) {
		t.Errorf("%s: got %v, want %v", question, got.Rows, want)
	}
}

// changing are settings, each as in a URL, with which ClickHouse answered a question wrongly, or no statement, until
// they were sent with every statement, or may do so where there are more rows or servers.
var changing = strings.Fields(`
	max_rows_to_read=2&read_overflow_mode=break&max_block_size=1 max_rows_to_read_leaf=2&read_overflow_mode_leaf=break
	max_bytes_to_read=64&read_overflow_mode=break max_result_rows=1&result_overflow_mode=break
	max_rows_to_group_by=1&group_by_overflow_mode=any max_rows_to_group_by=1&group_by_overflow_mode=break
	max_rows_in_join=1&join_overflow_mode=break max_rows_in_set=1&set_overflow_mode=break
	max_rows_in_distinct=1&distinct_overflow_mode=break max_rows_to_sort=1&sort_overflow_mode=break
	limit=1 offset=1 extremes=1 additional_result_filter=0 additional_table_filters={'runs':'0'}
	empty_result_for_aggregation_by_empty_set=1 prefer_column_name_to_alias=1 dialect=prql
	use_query_cache=1&query_cache_nondeterministic_function_handling=save`)

// harmless are settings with which it answers rightly, or not at all.
var harmless = strings.Fields(`
	transform_null_in=1 union_default_mode=DISTINCT session_timezone=Asia/Kathmandu
	count_distinct_implementation=uniq final=1 join_use_nulls=1 group_by_use_nulls=1
	any_join_distinct_right_table_keys=1 compatibility=22.3 enable_analyzer=0 totals_mode=before_having max_block_size=1
	do_not_merge_across_partitions_select_final=0 apply_deleted_mask=0 max_rows_to_read=2 force_primary_key=1
	cast_keep_nullable=1 data_type_default_nullable=1 convert_query_to_cnf=1`)

// A user who may not change what statements are sent with is told so before the first one fails.
func TestSettingsThatRefuse(t *testing.T) {
	theNode(t)
	for line, want := range map[string]struct {
		result   finding.Result
		says, do string
	}{
		"":                            {finding.OK, "no setting of the user's profile", ""},
		"force_index_by_date=1":       {finding.Problem, "refuse statements of ours", "SETTINGS force_index_by_date = 0"},
		"max_rows_to_read=1000":       {finding.Warning, "max_rows_to_read = 1000", "`tester` SETTINGS max_rows_to_read = 0"},
		"max_memory_usage=1000000000": {finding.Warning, "max_memory_usage is 953.7 MiB", "SETTINGS max_memory_usage = 0"},
		"readonly=2":                  {finding.Problem, "may only read", "SETTINGS readonly = 0"},
	} {
		settings, err := url.ParseQuery(line)
		if err != nil {
			t.Fatal(err)
		}
		found := patient(as(t, "http", "tester", settings)).Glance(t.Context())
		expect(t, about(found, "settings"), want.result, want.says, want.do)
	}
}
