package doctor_test

import (
	"encoding/json"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/query"
)

// Whatever a profile or a URL sets, a question is answered rightly or refused. Three people ran five runs, of which two
// are completed and one has failed.
func TestNoSettingChangesAnAnswer(t *testing.T) {
	plain := migrated(t, "tester")
	var records olaptest.Records
	people := []string{"ada@example.com", "ada@example.com", "bob@example.org", "bob@example.org", "eve@example.net"}
	for i, status := range []string{"COMPLETED", "COMPLETED", "FAILED", "RUNNING", "PENDING"} {
		at := time.Date(2026, time.Month(1+i), 1, 23, 30, 0, 0, time.UTC)
		records.Runs = append(records.Runs, olaptest.Run{Organization: "settings", ID: olaptest.ID(i), AgentID: olaptest.ID(9),
			Kind: "agent", Status: status, Identifier: &people[i], CreatedAt: at, UpdatedAt: at})
	}
	olaptest.Load(t, plain.Conn(), records)
	questions := map[string][][]any{
		`"metrics": ["run_count", "run_success_rate", "unique_initiator_count"]`: {{5., 2. / 3, 3.}},
		`"metrics": ["run_count"], "dimensions": ["day"]`: {{"2026-01-02", 1.}, {"2026-02-02", 1.}, {"2026-03-02", 1.},
			{"2026-04-02", 1.}, {"2026-05-02", 1.}},
		`"metrics": ["run_count"], "filters": [{"member": "user_identifier", "op": "eq", "value": "nobody"}]`: {{0.}},
	}
	for _, scheme := range []string{"http", "clickhouse"} {
		for _, line := range append(changing, "") {
			t.Run(scheme+" "+line, func(t *testing.T) {
				settings, err := url.ParseQuery(line)
				if err != nil {
					t.Fatal(err)
				}
				engine := olap.NewEngine(as(t, scheme, "tester", settings).Conn(), []byte("secret"))
				for question, want := range questions {
					ask(t, engine, question, want, line == "")
				}
			})
		}
	}
}

// ask wants an answer, or a refusal where that may be.
func ask(t *testing.T, engine *olap.Engine, question string, want [][]any, mustAnswer bool) {
	t.Helper()
	parsed, err := query.Parse([]byte(`{"model": "agent_runs", "range": {"start": "2026-01-01", "end": "2026-12-31",
		"timezone": "Europe/Stockholm"}, ` + question + `}`))
	if err != nil {
		t.Fatal(err)
	}
	result, err := engine.Run(t.Context(), olap.Request{OrganizationID: "settings", QueryID: uuid.New(), Query: parsed})
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

// changing are settings that change what ClickHouse answers, each as in a URL.
var changing = strings.Fields(`
	max_rows_to_read=2&read_overflow_mode=break&max_block_size=1 max_rows_to_read_leaf=2&read_overflow_mode_leaf=break
	max_bytes_to_read=64&read_overflow_mode=break max_result_rows=1&result_overflow_mode=break
	max_rows_to_group_by=1&group_by_overflow_mode=any max_rows_to_group_by=1&group_by_overflow_mode=break
	max_rows_in_join=1&join_overflow_mode=break max_rows_in_set=1&set_overflow_mode=break
	max_rows_in_distinct=1&distinct_overflow_mode=break max_rows_to_sort=1&sort_overflow_mode=break
	limit=1 offset=1 additional_result_filter=0 additional_table_filters={'runs':'0'}
	transform_null_in=1 join_default_strictness=ANY union_default_mode=DISTINCT session_timezone=Asia/Kathmandu
	count_distinct_implementation=uniq aggregate_functions_null_for_empty=1 empty_result_for_aggregation_by_empty_set=1
	final=1 join_use_nulls=1 group_by_use_nulls=1 any_join_distinct_right_table_keys=1 prefer_column_name_to_alias=1
	compatibility=22.3 enable_analyzer=0 totals_mode=before_having extremes=1 dialect=prql
	do_not_merge_across_partitions_select_final=0 apply_deleted_mask=0 apply_mutations_on_fly=1 max_block_size=1
	use_query_cache=1&query_cache_nondeterministic_function_handling=save date_time_output_format=unix_timestamp
	max_threads=1 max_rows_to_read=2 force_primary_key=1 exact_rows_before_limit=1 cast_keep_nullable=1
	data_type_default_nullable=1 low_cardinality_allow_in_native_format=0 use_legacy_to_time=1
	enable_extended_results_for_datetime_functions=1 optimize_aggregation_in_order=1 convert_query_to_cnf=1`)
