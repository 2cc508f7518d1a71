package move_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/runlens/runlens/ingest/move"
	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/query"
	"github.com/runlens/runlens/olap/rollup"
	"github.com/runlens/runlens/schema"
)

// interactions are how many attribution records an organization has, by a server.
func (b *bed) interactions(server *olap.Engine, organization schema.OrganizationID) (n uint64) {
	b.Helper()
	q, err := query.Parse([]byte(`{"model":"agent_user_activity","metrics":["interaction_count"],` +
		`"range":{"start":"2026-01-01","end":"2026-03-01","timezone":"UTC"}}`))
	b.must(err)
	result, err := server.Run(b.Context(), olap.Request{Access: schema.WholeOrganization(organization), Query: q,
		QueryID: uuid.New()})
	b.must(err)
	_, rows, _ := strings.Cut(string(result.AppendJSON(nil)), `"rows":`)
	_, err = fmt.Sscanf(rows, "[[%d]]", &n)
	b.must(err)
	return n
}

// An attribution record that was stored under two clocks counts once in the old cell. So it does in the new one from
// the first question on, though a server looks only every ten seconds of which organizations records have conflicts.
func TestConflictsAreKnownWhenAMoveSwitches(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.store(records(b.acme, 0, 2))
	again := records(b.acme, 0, 1)
	again.Attributions[0].OccurredAt += 3_600_000
	b.store(again)
	b.must(rollup.New(b.conns["a"], quiet, 0).Refresh(t.Context()))
	servers := map[string]*olap.Engine{}
	for name, conn := range b.conns {
		servers[name] = olap.NewEngine(conn, []byte("secret"))
	}
	b.must(b.move(b.subject(), "b", func(s move.Step) error {
		if s == move.Begun {
			b.interactions(servers["b"], b.other) // of somebody else: it has looked
		}
		if s == move.Switched {
			for name, server := range servers {
				if n := b.interactions(server, b.acme); n != 2 {
					t.Errorf("%d records by %s, want 2", n, name)
				}
			}
		}
		return nil
	}))
}
