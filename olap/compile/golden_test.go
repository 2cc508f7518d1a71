package compile

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/olap/cursor"
	"github.com/runlens/runlens/olap/query"
)

var update = flag.Bool("update", false, "rewrite testdata/golden from what the compiler prints now")

const goldenDir = "../../testdata/golden"

// The SQL of one query per shape. After a change run with -update and review the difference.
func TestGolden(t *testing.T) {
	text := func(s string) cursor.Value { return cursor.Value{Kind: cursor.Text, Text: s} }
	for _, c := range []struct {
		name, body string
		after      []cursor.Value
	}{
		{"runs_totals", `{"model":"agent_runs","metrics":["run_count","run_success_rate","unique_initiator_count"],"range":RANGE}`, nil},
		{"runs_by_user_type_own_clock", `{"model":"agent_runs","metrics":["run_count"],"dimensions":["user_type"],"range":RANGE}`, nil},
		{"runs_by_day", `{"model":"agent_runs","metrics":["run_count","active_run_count"],"dimensions":["day"],"range":{"start":"2026-03-01","end":"2026-10-31","timezone":"Europe/Stockholm"}}`, nil},
		{"runs_by_agent_top", `{"model":"agent_runs","metrics":["failed_run_count"],"dimensions":["agent_id"],"order":[{"member":"failed_run_count","direction":"desc"}],"limit":10,"range":RANGE}`, nil},
		{"runs_by_person_next_page", `{"model":"agent_runs","metrics":["run_count"],"dimensions":["user_identifier","user_type"],"order":[{"member":"user_type","direction":"desc"}],"range":RANGE}`,
			[]cursor.Value{text("internal"), {Kind: cursor.Null}}},
		{"runs_filtered", `{"model":"agent_runs","metrics":["run_count"],"filters":[{"member":"agent_id","op":"in","values":["support","0B7E4D2C-0000-4000-8000-000000000001"]},{"member":"user_identifier","op":"eq","value":"Ada@Example.com"},{"member":"user_type","op":"eq","value":"internal"},{"member":"day","op":"in","values":["2026-01-02","2026-01-05"]}],"range":RANGE}`, nil},
		{"activity_totals", `{"model":"agent_user_activity","metrics":["attributed_run_count","associated_run_count","interacted_run_count"],"range":RANGE}`, nil},
		{"activity_interactions_by_day", `{"model":"agent_user_activity","metrics":["interaction_count"],"dimensions":["day"],"range":RANGE}`, nil},
		{"activity_statuses_by_agent", `{"model":"agent_user_activity","metrics":["completed_attributed_run_count","active_attributed_run_count"],"dimensions":["agent_id"],"range":RANGE}`, nil},
		{"activity_statuses_by_agent_outside_sent", `{"model":"agent_user_activity","metrics":["completed_attributed_run_count","active_attributed_run_count"],"dimensions":["agent_id"],"range":RANGE}`, nil},
		{"activity_statuses_by_agent_merged_parts", `{"model":"agent_user_activity","metrics":["completed_attributed_run_count"],"dimensions":["agent_id"],"range":RANGE}`, nil},
		{"activity_statuses_totals_of_a_year", `{"model":"agent_user_activity","metrics":["attributed_run_count","completed_attributed_run_count","active_attributed_run_count","interaction_count"],"range":{"start":"2025-02-01","end":"2026-01-31","timezone":"UTC"}}`, nil},
		{"activity_statuses_totals_of_a_large_year", `{"model":"agent_user_activity","metrics":["attributed_run_count","completed_attributed_run_count"],"range":{"start":"2025-02-01","end":"2026-01-30","timezone":"Asia/Tokyo"}}`, nil},
		{"activity_statuses_totals_conflicts", `{"model":"agent_user_activity","metrics":["attributed_run_count","completed_attributed_run_count"],"range":RANGE}`, nil},
		{"activity_by_every_dimension", `{"model":"agent_user_activity","metrics":["attributed_run_count"],"dimensions":["agent_id","user_identifier","user_domain","activity_type","run_initiation_type","source","day"],"range":RANGE}`, nil},
		{"rollup_runs_totals", `{"model":"agent_runs","metrics":["run_count","run_success_rate"],"range":RANGE}`, nil},
		{"rollup_runs_by_day_and_agent_next_page", `{"model":"agent_runs","metrics":["run_count","active_run_count"],"dimensions":["day","agent_id"],"range":{"start":"2026-03-01","end":"2026-10-31","timezone":"Europe/Stockholm"}}`,
			[]cursor.Value{{Kind: cursor.Day, Day: 20600}, text("0b7e4d2c-0000-4000-8000-000000000001")}},
		{"rollup_runs_filtered", `{"model":"agent_runs","metrics":["failed_run_count"],"dimensions":["day"],"filters":[{"member":"user_type","op":"eq","value":"internal"}],"range":{"start":"2026-01-01","end":"2026-01-31","timezone":"Asia/Kathmandu"}}`, nil},
		{"rollup_runs_by_day_own_clock", `{"model":"agent_runs","metrics":["run_count"],"dimensions":["day"],"range":RANGE}`, nil},
		{"rollup_runs_by_agent_unchanged", `{"model":"agent_runs","metrics":["run_count"],"dimensions":["agent_id"],"range":RANGE}`, nil},
		{"rollup_initiators_range_edges", `{"model":"agent_runs","metrics":["unique_initiator_count"],"range":{"start":"2025-02-01","end":"2026-01-31","timezone":"UTC"}}`, nil},
		{"rollup_initiators_by_day", `{"model":"agent_runs","metrics":["unique_initiator_count","failed_run_count"],"dimensions":["day"],"filters":[{"member":"user_identifier","op":"eq","value":"cron"}],"range":RANGE}`, nil},
		{"rollup_runs_by_person_next_page", `{"model":"agent_runs","metrics":["run_count"],"dimensions":["user_identifier","user_type"],"filters":[{"member":"user_identifier","op":"in","values":["ada@example.com","cron"]}],"range":RANGE}`,
			[]cursor.Value{text("ada@example.com"), {Kind: cursor.Null}}},
		{"rollup_runs_by_day_cached_delta", `{"model":"agent_runs","metrics":["run_count"],"dimensions":["day"],"range":RANGE}`, nil},
		{"rollup_runs_by_person_cached_delta", `{"model":"agent_runs","metrics":["run_count"],"dimensions":["user_identifier"],"range":RANGE}`, nil},
		{"rollup_runs_by_day_after_as_of", `{"model":"agent_runs","metrics":["run_count"],"dimensions":["day"],"range":RANGE}`, nil},
		{"rollup_activity_by_day", `{"model":"agent_user_activity","metrics":["interaction_count"],"dimensions":["day"],"range":RANGE}`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			q, err := query.Parse([]byte(strings.ReplaceAll(c.body, "RANGE", `{"start":"2026-01-01","end":"2026-01-31","timezone":"UTC"}`)))
			if err != nil {
				t.Fatal(err)
			}
			in := Input{Organization: "acme", Query: q, AsOf: time.UnixMilli(1_770_000_000_000), After: c.after}
			if strings.HasPrefix(c.name, "rollup_") {
				in.Watermark = in.AsOf.Add(-time.Minute)
				switch {
				case strings.HasSuffix(c.name, "_after_as_of"):
					in.Watermark = in.AsOf.Add(time.Minute)
				case strings.HasSuffix(c.name, "_unchanged"):
					in.Changes = DeltaNone
				case strings.HasSuffix(c.name, "_cached_delta"):
					in.Changes = DeltaCached
				}
			}
			if strings.HasPrefix(c.name, "activity_") && (strings.HasSuffix(c.name, "_outside_sent") || strings.HasSuffix(c.name, "_merged_parts")) {
				in.OutsideSince = in.AsOf.Add(-time.Minute)
			}
			if strings.HasSuffix(c.name, "_merged_parts") {
				in.MergedParts = []string{"202601_1_9_2"}
			}
			in.Large = strings.Contains(c.name, "_large_")
			in.Conflicts = strings.HasSuffix(c.name, "_conflicts")
			if strings.HasSuffix(c.name, "_own_clock") {
				in.AsOf = time.Time{}
			}
			s := Compile(in)
			var got strings.Builder
			fmt.Fprintf(&got, "-- %s\n%s\n\n", c.body, s.SQL)
			for _, p := range s.Params {
				fmt.Fprintf(&got, "-- %s = %v\n", p.Name, p.Value)
			}
			file := filepath.Join(goldenDir, c.name+".sql")
			if *update {
				if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got.String() != string(want) {
				t.Errorf("%s is not what the compiler prints now; run 'go test ./olap/compile -update' and review:\n%s", file, got.String())
			}
		})
	}
}

// No value of a caller ever becomes part of the SQL text: each comes back in the parameters only.
func TestValuesStayOutOfTheText(t *testing.T) {
	const evil = `'); DROP TABLE runs; -- \`
	body := fmt.Sprintf(`{"model":"agent_user_activity","metrics":["attributed_run_count"],"dimensions":["user_identifier","source"],"filters":[
		{"member":"agent_id","op":"eq","value":%[1]q},{"member":"user_identifier","op":"eq","value":%[1]q},{"member":"source","op":"in","values":[%[1]q]}],
		"range":{"start":"2026-01-01","end":"2026-01-31","timezone":"UTC"}}`, evil)
	q, err := query.Parse([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	s := Compile(Input{Organization: evil, Query: q, After: []cursor.Value{{Kind: cursor.Text, Text: evil}, {Kind: cursor.Text, Text: evil}}})
	if strings.Contains(s.SQL, "DROP") {
		t.Errorf("a value became SQL text:\n%s", s.SQL)
	}
	carried := 0
	for _, p := range s.Params {
		carried += strings.Count(fmt.Sprint(p.Value), "DROP")
	}
	if carried != 6 {
		t.Errorf("%d of 6 values travel as parameters", carried)
	}
}

// Every read of every table is for the one organization (contract 3: identities never mix).
func TestEveryTableIsReadForOneOrganization(t *testing.T) {
	body := `{"model":"agent_user_activity","metrics":["completed_attributed_run_count"],"dimensions":["agent_id"],"filters":[{"member":"agent_id","op":"eq","value":"support"}],"range":{"start":"2026-01-01","end":"2026-01-31","timezone":"UTC"}}`
	q, err := query.Parse([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	s := Compile(Input{Organization: "acme", Query: q})
	// The records and the agent of the filter twice, runs three times (near, found missing, far), and the agents' names.
	reads := strings.Count(s.SQL, "FROM runs") + strings.Count(s.SQL, "FROM agents") + strings.Count(s.SQL, "FROM attributions")
	if predicates := strings.Count(s.SQL, ofOrganization); reads != 8 || predicates != reads {
		t.Errorf("%d reads of tables, %d predicates, want 8 of each:\n%s", reads, predicates, s.SQL)
	}
}
