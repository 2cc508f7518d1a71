package worker_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/google/uuid"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/verify"
	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/query"
	"github.com/runlens/runlens/olap/rollup"
	"github.com/runlens/runlens/schema"
)

// refreshed is how many runs of an organization a query counts when the rollup was refreshed once.
func (b *bed) refreshed(organization string) uint64 {
	b.Helper()
	if err := rollup.New(b.store, slog.New(slog.DiscardHandler), 0).Refresh(context.Background()); err != nil {
		b.Fatal(err)
	}
	q, err := query.Parse(
		[]byte(
			`{"model":"agent_runs","metrics":["run_count"],"range":{"start":"2025-08-01","end":"2026-06-30","timezone":"UTC"}}`,
		),
	)
	if err != nil {
		b.Fatal(err)
	}
	result, err := olap.NewEngine(b.store, []byte("secret")).Run(context.Background(),
		olap.Request{Access: schema.WholeOrganization(schema.OrganizationID(organization)), Query: q, QueryID: uuid.New()})
	if err != nil {
		b.Fatal(err)
	}
	var answer struct{ Rows [][]uint64 }
	if err := json.Unmarshal(result.AppendJSON(nil), &answer); err != nil {
		b.Fatal(err)
	}
	return answer.Rows[0][0]
}

// A source whose created_at moves, by a millisecond and back, counts every run once and has no differences; so does
// one whose created_at and updated_at both go back, after a full comparison.
func TestCreatedAtMoves(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.insert("acme", 1, 50)
	_, stop := b.start(nil)
	b.untilEqual()
	const some = " WHERE get_byte(uuid_send(run_id), 15) <= 10"
	for _, move := range []string{"+ interval '1 ms'", "- interval '1 ms'", "+ interval '2 months'"} {
		b.do("UPDATE runs SET created_at = created_at " + move + ", updated_at = clock_timestamp()" + some)
		b.untilEqual()
		if n := b.refreshed("acme"); n != 50 {
			t.Errorf("%s: %d runs, want 50", move, n)
		}
	}
	stop()
	b.do("UPDATE runs SET created_at = created_at - interval '70 days', updated_at = '2026-01-02'" + some)
	found := b.reconcile(nil)
	if found.Replaced != 10 {
		t.Errorf("%+v, want 10 runs replaced", found)
	}
	if n := b.refreshed("acme"); n != 50 {
		t.Errorf("after a full comparison: %d runs, want 50", n)
	}
	if d := b.differences(); len(d) != 0 {
		t.Errorf("%d groups differ, the first is %+v", len(d), d[0])
	}
	// What moved is named, and what replaced it is not.
	b.do(
		"UPDATE runs SET created_at = created_at + interval '1 ms', updated_at = clock_timestamp() WHERE " +
			"get_byte(uuid_send(run_id), 15) = 1",
	)
	b.copied()
	for range 2 { // before a refresh and after it
		report, err := verify.Compare(context.Background(),
			verify.Options{Source: verify.Postgres{Database: b.source}, Conn: b.store, MaxIDs: 5})
		if err != nil {
			t.Fatal(err)
		}
		if c := report.Conflicts; len(c) != 1 || c[0].Kind != normalize.KindRun || c[0].Count != 1 || len(c[0].IDs) != 1 ||
			c[0].IDs[0][15] != 1 {
			t.Errorf("%+v, want run 1", c)
		}
		b.refreshed("acme")
	}
}
