package write_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/purged"
	"github.com/runlens/runlens/ingest/write"
	"github.com/runlens/runlens/olap/cells"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/schema"
)

// Each record goes to the store of its organization and to no other, and what a purged person did stays out of that
// one, with its place in the batch. One of an organization that no store has is refused.
func TestSplit(t *testing.T) {
	a, b := olaptest.OpenStore(t).Conn(), olaptest.OpenStore(t).Conn()
	organizations := []schema.OrganizationID{"acme", "globex", "initech"}
	of := func(o schema.OrganizationID) int { return slices.Index(organizations, o) % 2 } // globex is in b; -1 for none
	ada := purged.Person{Organization: "globex", Identifier: "ada@example.com"}
	at := time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)
	if err := purged.Add(t.Context(), b, ada, at); err != nil {
		t.Fatal(err)
	}
	s := write.NewSplit(of, write.NewWriter(a, quiet), write.NewWriter(b, quiet))
	var batch write.Batch
	for i := range 6 {
		o, id := organizations[i%3], uuid.New()
		batch.Agents = append(batch.Agents, normalize.Agent{OrganizationID: o, AgentID: id})
		batch.Runs = append(batch.Runs, normalize.Run{OrganizationID: o, RunID: id, RunKind: "agent", Status: "PENDING"})
		batch.Attributions = append(batch.Attributions, normalize.Attribution{
			OrganizationID: o, AttributionID: id, RunID: id, AgentID: id, UserIdentifier: ada.Identifier,
			ActivityType: "interacted", RunInitiationType: "human", Source: "web", OccurredAt: at.UnixMilli(),
		})
	}
	if err := s.Write(t.Context(), &batch); err != nil {
		t.Fatal(err)
	}
	for table, want := range map[string][2]uint64{"agents": {4, 2}, "runs": {4, 2}, "attributions": {4, 0}} {
		var inA, inB, wrong uint64
		count := "SELECT count(), countIf((organization_id = 'globex') != $1) FROM " + table
		if err := a.QueryRow(t.Context(), count, 0).Scan(&inA, &wrong); err != nil || wrong != 0 {
			t.Errorf("%s: %d of another cell, %v", table, wrong, err)
		}
		if err := b.QueryRow(t.Context(), count, 1).Scan(&inB, &wrong); err != nil || wrong != 0 {
			t.Errorf("%s: %d of another cell, %v", table, wrong, err)
		}
		if inA != want[0] || inB != want[1] {
			t.Errorf("%s: %d and %d, want %v", table, inA, inB, want)
		}
	}
	nowhere := normalize.Attribution{OrganizationID: "umbrella", UserIdentifier: ada.Identifier}
	if err := s.Excludes(&nowhere); err != nil {
		t.Errorf("an organization that is in no cell: %v", err)
	}
	unknown := write.Batch{Attributions: []normalize.Attribution{nowhere}}
	if err := s.Write(t.Context(), &unknown); !errors.Is(err, cells.ErrUnknownCell) {
		t.Errorf("an organization that is in no cell: %v", err)
	}
	var excluded []int
	for _, e := range batch.Excluded {
		excluded = append(excluded, e.Index)
		if s.Excludes(&e.Attribution) == nil {
			t.Errorf("nothing says why record %d stays out", e.Index)
		}
	}
	if !slices.Equal(excluded, []int{1, 4}) || len(batch.Attributions) != 4 {
		t.Errorf("%v stay out, and %d are stored", excluded, len(batch.Attributions))
	}
}
