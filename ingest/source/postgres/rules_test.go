package postgres_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/olap/doctor/finding"
)

// Rows that are written elsewhere arrive with the times of then. Tables of which that is known are named, also behind
// a view and in parts, and no others are. So are conditions that hide rows of a table in parts.
func TestTablesThatAreWrittenElsewhere(t *testing.T) {
	t.Parallel()
	url, conn := layout(t)
	do(t, conn, `CREATE MATERIALIZED VIEW "Old runs" AS SELECT * FROM runs;
		CREATE VIEW all_runs AS SELECT * FROM runs UNION ALL SELECT * FROM "Old runs";
		CREATE EXTENSION postgres_fdw; CREATE SERVER far FOREIGN DATA WRAPPER postgres_fdw;
		CREATE USER MAPPING FOR CURRENT_USER SERVER far;
		CREATE FOREIGN TABLE far_agents (organization_id text, agent_id uuid, name text, slug text, deleted_at timestamptz,
			updated_at timestamptz) SERVER far;
		CREATE TABLE many (LIKE attributions) PARTITION BY HASH (organization_id);
		CREATE TABLE many_1 PARTITION OF many FOR VALUES WITH (MODULUS 2, REMAINDER 0);
		CREATE TABLE many_2 PARTITION OF many FOR VALUES WITH (MODULUS 2, REMAINDER 1);
		CREATE TABLE subscribed (LIKE attributions);
		CREATE SUBSCRIPTION here CONNECTION 'dbname=none' PUBLICATION there WITH (connect = false, slot_name = NONE);
		SET allow_system_table_mods = on;
		INSERT INTO pg_subscription_rel (srsubid, srrelid, srsubstate)
			SELECT oid, c, 'r' FROM pg_subscription, unnest('{many,subscribed}'::regclass[]) AS c`)
	defer do(t, conn, "DROP SUBSCRIPTION here")
	for from, want := range map[string][]string{
		"agents":       nil,
		"runs":         nil,
		"attributions": nil,
		"all_runs":     {`"public"."Old runs"`},
		"far_agents":   {`"public"."far_agents"`},
		"many":         {`"public"."many_1"`, `"public"."many_2"`},
		"subscribed":   {`"public"."subscribed"`},

		"attributions WHERE source <> ''": nil,
		"many WHERE source <> ''":         {`"public"."many_1"`, `"public"."many_2"`},
	} {
		kind := map[string]normalize.Kind{"agents": "agent", "far_agents": "agent", "runs": "run", "all_runs": "run"}[from]
		if kind == "" {
			kind = normalize.KindAttribution
		}
		database := open(t, url, "FROM "+string(kind)+"s\n", "FROM "+from+"\n")
		gaps, err := database.Gaps(t.Context(), kind)
		if err != nil || !slices.Equal(gaps.Elsewhere, want) {
			t.Errorf("%s: %q, %v, want %q", from, gaps.Elsewhere, err, want)
		}
		if want := strings.Contains(from, "WHERE"); gaps.Hides != want {
			t.Errorf("%s: a condition that hides rows: %v, want %v", from, gaps.Hides, want)
		}
		if advice, err := database.Advise(t.Context(), kind, true); err != nil || want == nil && len(advice) > 0 ||
			want != nil && !slices.ContainsFunc(advice, func(f finding.Finding) bool {
				return strings.Contains(f.Says, "written elsewhere") && strings.Contains(f.Says, strings.Join(want, ", "))
			}) {
			t.Errorf("%s: %+v, %v", from, advice, err)
		}
	}
}
