package compile

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/olap/plan"
	"github.com/runlens/runlens/olap/query"
	"github.com/runlens/runlens/olap/value"
	"github.com/runlens/runlens/schema"
	"github.com/runlens/runlens/schema/sql"
)

var update = flag.Bool("update", false, "rewrite testdata/golden from what the compiler prints now")

const goldenDir = "../../testdata/golden"

// The SQL of one query per shape. After a change run with -update and review the difference.
func TestGolden(t *testing.T) {
	text := func(s string) value.Value { return value.Value{Kind: value.Text, Text: s} }
	for _, c := range []struct {
		name, body string
		after      []value.Value
	}{
		{"runs_totals", `{"model":"agent_runs","metrics":["run_count","run_success_rate","unique_initiator_count"],` +
			`"range":RANGE}`, nil},
		{"runs_by_user_type_own_clock", `{"model":"agent_runs","metrics":["run_count"],"dimensions":["user_type"],` +
			`"range":RANGE}`, nil},
		{"runs_by_day", `{"model":"agent_runs","metrics":["run_count","active_run_count"],"dimensions":["day"],` +
			`"range":{"start":"2026-03-01","end":"2026-10-31","timezone":"Europe/Stockholm"}}`, nil},
		{"runs_by_agent_top", `{"model":"agent_runs","metrics":["failed_run_count"],"dimensions":["agent_id"],` +
			`"order":[{"member":"failed_run_count","direction":"desc"}],"limit":10,"range":RANGE}`, nil},
		{"runs_by_person_next_page", `{"model":"agent_runs","metrics":["run_count"],"dimensions":["user_identifier",` +
			`"user_type"],"order":[{"member":"user_type","direction":"desc"}],"range":RANGE}`,
			[]value.Value{text("internal"), {Kind: value.Null}}},
		{"runs_filtered", `{"model":"agent_runs","metrics":["run_count"],"filters":[{"member":"agent_id","op":"in",` +
			`"values":["support","0B7E4D2C-0000-4000-8000-000000000001"]},{"member":"user_identifier","op":"eq",` +
			`"value":"Ada@Example.com"},{"member":"user_type","op":"eq","value":"internal"},{"member":"day","op":"in",` +
			`"values":["2026-01-02","2026-01-05"]}],"range":RANGE}`, nil},
		{"activity_totals", `{"model":"agent_user_activity","metrics":["attributed_run_count","associated_run_count",` +
			`"interacted_run_count"],"range":RANGE}`, nil},
		{"activity_totals_of_few", `{"model":"agent_user_activity","metrics":["attributed_run_count",` +
			`"associated_run_count"],"range":RANGE}`, nil},
		{"activity_interactions_by_day", `{"model":"agent_user_activity","metrics":["interaction_count"],` +
			`"dimensions":["day"],"range":RANGE}`, nil},
		{"activity_statuses_by_agent", `{"model":"agent_user_activity","metrics":["completed_attributed_run_count",` +
			`"active_attributed_run_count"],"dimensions":["agent_id"],"range":RANGE}`, nil},
		{"activity_statuses_by_agent_large", `{"model":"agent_user_activity","metrics":["completed_attributed_run_count",` +
			`"active_attributed_run_count"],"dimensions":["agent_id"],"range":RANGE}`, nil},
		{"activity_statuses_totals_own_clock", `{"model":"agent_user_activity","metrics":["attributed_run_count",` +
			`"completed_attributed_run_count"],"range":RANGE}`, nil},
		{"activity_statuses_totals_of_a_year", `{"model":"agent_user_activity","metrics":["attributed_run_count",` +
			`"completed_attributed_run_count","active_attributed_run_count","interaction_count"],` +
			`"range":{"start":"2025-02-01","end":"2026-01-31","timezone":"UTC"}}`, nil},
		{"activity_statuses_totals_of_a_large_year", `{"model":"agent_user_activity","metrics":["attributed_run_count",` +
			`"completed_attributed_run_count"],"range":{"start":"2025-02-01","end":"2026-01-30","timezone":"Asia/Tokyo"}}`, nil},
		{"activity_statuses_totals_conflicts", `{"model":"agent_user_activity","metrics":["attributed_run_count",` +
			`"completed_attributed_run_count"],"range":RANGE}`, nil},
		{"activity_by_every_dimension", `{"model":"agent_user_activity","metrics":["attributed_run_count"],` +
			`"dimensions":["agent_id","user_identifier","user_domain","activity_type","run_initiation_type","source","day"],` +
			`"range":RANGE}`, nil},
		{"rollup_runs_totals", `{"model":"agent_runs","metrics":["run_count","run_success_rate"],"range":RANGE}`, nil},
		{"rollup_runs_by_day_and_agent_next_page", `{"model":"agent_runs","metrics":["run_count","active_run_count"],` +
			`"dimensions":["day","agent_id"],"range":{"start":"2026-03-01","end":"2026-10-31","timezone":"Europe/Stockholm"}}`,
			[]value.Value{{Kind: value.Day, Number: 20600}, text("0b7e4d2c-0000-4000-8000-000000000001")}},
		{"rollup_runs_filtered", `{"model":"agent_runs","metrics":["failed_run_count"],"dimensions":["day"],` +
			`"filters":[{"member":"user_type","op":"eq","value":"internal"}],"range":{"start":"2026-01-01","end":"2026-01-31",` +
			`"timezone":"Asia/Kathmandu"}}`, nil},
		{"rollup_runs_by_agent_unchanged", `{"model":"agent_runs","metrics":["run_count"],"dimensions":["agent_id"],` +
			`"range":RANGE}`, nil},
		{"rollup_initiators_range_edges", `{"model":"agent_runs","metrics":["unique_initiator_count"],` +
			`"range":{"start":"2025-02-01","end":"2026-01-31","timezone":"UTC"}}`, nil},
		{"rollup_initiators_by_day", `{"model":"agent_runs","metrics":["unique_initiator_count","failed_run_count"],` +
			`"dimensions":["day"],"filters":[{"member":"user_identifier","op":"eq","value":"cron"}],"range":RANGE}`, nil},
		{"rollup_initiators_by_day_of_a_year", `{"model":"agent_runs","metrics":["unique_initiator_count","run_count"],` +
			`"dimensions":["day"],"range":{"start":"2025-02-01","end":"2026-01-31","timezone":"Europe/Stockholm"}}`, nil},
		{"rollup_runs_by_person_next_page", `{"model":"agent_runs","metrics":["run_count"],"dimensions":["user_identifier",` +
			`"user_type"],"filters":[{"member":"user_identifier","op":"in","values":["ada@example.com","cron"]}],"range":RANGE}`,
			[]value.Value{text("ada@example.com"), {Kind: value.Null}}},
		{"rollup_runs_by_day_cached_delta", `{"model":"agent_runs","metrics":["run_count"],"dimensions":["day"],` +
			`"range":RANGE}`, nil},
		{"rollup_runs_by_person_unchanged", `{"model":"agent_runs","metrics":["run_count"],` +
			`"dimensions":["user_identifier"],"range":RANGE}`, nil},
		{"rollup_runs_by_day_after_as_of", `{"model":"agent_runs","metrics":["run_count"],"dimensions":["day"],` +
			`"range":RANGE}`, nil},
		{"rollup_activity_by_day", `{"model":"agent_user_activity","metrics":["interaction_count"],"dimensions":["day"],` +
			`"range":RANGE}`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			q, err := query.Parse([]byte(strings.ReplaceAll(c.body, "RANGE", `{"start":"2026-01-01","end":"2026-01-31",`+
				`"timezone":"UTC"}`)))
			if err != nil {
				t.Fatal(err)
			}
			s := Compile(Input{Plan: plan.Of(q).Plan(factsOf(c.name)), Organization: "acme", After: c.after})
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
				t.Errorf("%s is not what the compiler prints now; run 'go test ./olap/compile -update' and review:\n%s", file,
					got.String())
			}
		})
	}
}

// No value of a caller ever becomes part of the SQL text: each comes back in the parameters only.
func TestValuesStayOutOfTheText(t *testing.T) {
	const evil = `'); DROP TABLE runs; -- \`
	body := fmt.Sprintf(`{"model":"agent_user_activity","metrics":["attributed_run_count"],`+
		`"dimensions":["user_identifier","source"],"filters":[
		{"member":"agent_id","op":"eq","value":%[1]q},{"member":"user_identifier","op":"eq","value":%[1]q},`+
		`{"member":"source","op":"in","values":[%[1]q]}],
		"range":{"start":"2026-01-01","end":"2026-01-31","timezone":"UTC"}}`, evil)
	q, err := query.Parse([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	after := []value.Value{{Kind: value.Text, Text: evil}, {Kind: value.Text, Text: evil}}
	s := Compile(Input{Plan: plan.Of(q).Plan(plan.Facts{}), Organization: evil, After: after})
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

// Every read of every table in every golden statement is for the one organization (contract 3: identities never mix).
// The log of the rollup is not an organization's, nor are the tables that come with a statement.
func TestEveryTableIsReadForOneOrganization(t *testing.T) {
	tables := []string{schema.TableRuns, schema.TableAttributions, schema.TableAgents, schema.TableInitiatorKeys,
		schema.TableSharedKeys}
	for _, r := range schema.RollupTables {
		tables = append(tables, r.Table)
	}
	files, err := filepath.Glob(filepath.Join(goldenDir, "*.sql"))
	if err != nil || len(files) < 20 {
		t.Fatal(len(files), err)
	}
	seen := map[string]bool{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		reads := 0
		for _, table := range tables {
			read := regexp.MustCompile(`\bFROM ` + table + `\b( FINAL)?\s+(.*)`)
			for _, found := range read.FindAllStringSubmatch(string(content), -1) {
				reads, seen[table] = reads+1, true
				if !strings.HasPrefix(found[2], "WHERE "+sql.OfOrganization) {
					t.Errorf("%s reads %s without the predicate: %s", file, table, found[0])
				}
			}
		}
		if reads == 0 {
			t.Errorf("%s reads nothing", file)
		}
	}
	for _, table := range tables {
		if !seen[table] {
			t.Errorf("no golden statement reads %s", table)
		}
	}
}

// factsOf are the facts that the name of a golden file means.
func factsOf(name string) plan.Facts {
	has := func(word string) bool { return strings.Contains("_"+name+"_", "_"+word+"_") }
	f := plan.Facts{AsOf: time.UnixMilli(1_770_000_000_000), Conflicts: has("conflicts"), Records: 400_000}
	if has("few") {
		f.Records = 1000
	}
	if f.Options.NoWindow = !has("large"); has("large") || has("rollup") {
		f.Records = 10_000_000
	}
	if has("rollup") {
		f.Watermark = f.AsOf.Add(-time.Minute)
		f.Begun, f.Lease, f.Damage = 7, 5, 3
	}
	switch {
	case has("after_as_of"):
		f.Watermark = f.AsOf.Add(time.Minute)
	case has("unchanged"):
		f.DeltaRead = true
	case has("cached_delta"):
		f.DeltaRead, f.DeltaRows = true, 1
	}
	if has("own_clock") {
		f.AsOf = time.Time{}
	}
	return f
}
