package doctor_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/runlens/runlens/ingest/purge"
	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/doctor"
	"github.com/runlens/runlens/olap/doctor/finding"
	"github.com/runlens/runlens/olap/keys"
	"github.com/runlens/runlens/olap/maintain"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/query"
	"github.com/runlens/runlens/olap/rollup"
	"github.com/runlens/runlens/schema"
)

// A user with the rights that the doctor names, and no other, migrates, stores, refreshes, merges, compares, rebuilds,
// answers and purges.
func TestRightsSuffice(t *testing.T) {
	store := migrated(t, "exact")
	expect(t, about(patient(store).Glance(t.Context()), "grants"), finding.OK, "has what every command needs", "")
	conn, ctx, quiet := store.Conn(), t.Context(), slog.New(slog.DiscardHandler)
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ada := "ada@example.com"
	run := olaptest.Run{Organization: "rights", ID: olaptest.ID(1), AgentID: olaptest.ID(9), Kind: "agent",
		Status: "COMPLETED", Identifier: &ada, CreatedAt: at, UpdatedAt: at}
	for range 2 {
		olaptest.Load(t, conn, olaptest.Records{
			Agents: []olaptest.Agent{{Organization: "rights", ID: olaptest.ID(9), Name: "Support", UpdatedAt: at}},
			Runs:   []olaptest.Run{run}, Attributions: []olaptest.Attribution{run.By(ada)},
		})
	}
	refresh := func() error { return rollup.New(conn, quiet, 0).Refresh(ctx) }
	engine := olap.NewEngine(conn, []byte("secret"))
	engine.CacheAnswers(1 << 20)
	purging := purge.Person("rights", ada)
	for _, work := range []struct {
		name string
		do   func() error
	}{
		{"refresh", refresh},
		{"merge", func() error { _, err := maintain.NewCompactor(conn, 0).Step(ctx); return err }},
		{"check", func() error { _, err := rollup.Check(ctx, conn); return err }},
		{"answer", func() error { return ask1(t, engine) }},
		{"keys", func() error { _, err := keys.NewStore(conn).List(ctx, "rights"); return err }},
		{"rebuild", func() error { return rollup.Rebuild(ctx, conn) }},
		{"refresh again", refresh},
		{"count", func() error { return purging.Count(ctx, conn) }},
		{"purge", func() error { return purging.Run(ctx, conn, func(purge.Step) {}) }},
		{"purge an organization", func() error {
			return purge.Organization("rights").Run(ctx, conn, func(purge.Step) {})
		}},
		{"damaged parts", func() error {
			if f := about(patient(store).Glance(ctx), "damaged parts"); f[0].Result != finding.OK {
				t.Error(f)
			}
			return nil
		}},
	} {
		if err := work.do(); err != nil {
			t.Errorf("%s: %v", work.name, err)
		}
	}
}

// ask1 counts the runs of the organization.
func ask1(t *testing.T, engine *olap.Engine) error {
	parsed, err := query.Parse([]byte(`{"model": "agent_runs", "metrics": ["run_count"],
		"range": {"start": "2026-03-01", "end": "2026-03-31", "timezone": "UTC"}}`))
	if err != nil {
		return err
	}
	_, err = engine.Run(t.Context(), olap.Request{Access: schema.WholeOrganization("rights"), QueryID: uuid.New(),
		Query: parsed})
	return err
}

// Every right that is named is missed by somebody who lacks it: the statement that gives it is printed.
func TestMissingRightsAreNamed(t *testing.T) {
	theNode(t)
	found := patient(as(t, "http", "less", nil)).Examine(t.Context())
	grants := about(found, "grants")
	if len(grants) != 2 {
		t.Fatalf("found %+v", grants)
	}
	expect(t, grants[:1], finding.Problem, "lacks OPTIMIZE on `analytics`.*, for maintenance",
		"GRANT OPTIMIZE ON `analytics`.* TO `less`")
	expect(t, grants[1:], finding.Warning, "lacks SELECT on system.events", "GRANT SELECT ON system.events TO `less`")
	for check, right := range map[string]string{
		"disks":      "GRANT SELECT ON system.disks, SELECT ON system.storage_policies TO `less`",
		"open files": "GRANT SELECT ON system.server_settings TO `less`",
		"log tables": "GRANT SHOW TABLES ON system.* TO `less`",
	} {
		expect(t, about(found, check), finding.Unknown, "the user may not", right)
	}
	if finding.Worst(found) != finding.Problem {
		t.Errorf("the worst is %s", finding.Worst(found))
	}
}

// A right that nothing needs would be asked for in vain.
func TestRightsAreOfTheDatabase(t *testing.T) {
	for _, r := range doctor.Rights("a`b") {
		if strings.Contains(r, ".*") && !strings.HasSuffix(r, "ON `a\\`b`.*") {
			t.Errorf("%s is not of the database alone", r)
		}
	}
}
