package move_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/runlens/runlens/ingest/move"
	"github.com/runlens/runlens/ingest/write"
	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/cells"
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

// twice stores two records of an organization in the old cell, without its gate, and one of them under a second clock
// too, which the cell notes.
func (b *bed) twice(organization schema.OrganizationID) {
	b.Helper()
	again := records(organization, 0, 1)
	again.Attributions[0].OccurredAt += 3_600_000
	for _, batch := range []*write.Batch{records(organization, 0, 2), again} {
		b.must(write.NewWriter(b.conns["a"], write.Retry{Logger: quiet}).Write(b.Context(), batch))
	}
	b.must(rollup.New(b.conns["a"], quiet, 0).Refresh(b.Context()))
}

// servers are those of the cells.
func (b *bed) servers() map[string]*olap.Engine {
	servers := map[string]*olap.Engine{}
	for name, conn := range b.conns {
		servers[name] = olap.NewEngine(conn, []byte("secret"))
	}
	return servers
}

// eachHasTwo fails if a server does not count two records of an organization.
func (b *bed) eachHasTwo(servers map[string]*olap.Engine, organization schema.OrganizationID) {
	b.Helper()
	for name, server := range servers {
		if n := b.interactions(server, organization); n != 2 {
			b.Errorf("%d records of %s by %s, want 2", n, organization, name)
		}
	}
}

// An attribution record that was stored under two clocks counts once in the old cell. So it does in the new one from
// the first question on, though a server looks only every ten seconds of which organizations records have conflicts.
func TestConflictsAreKnownWhenAMoveSwitches(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.twice(b.acme)
	servers := b.servers()
	b.must(b.move(b.subject(), "b", func(s move.Step) error {
		if s == move.Begun {
			b.interactions(servers["b"], b.other) // of somebody else: it has looked
		}
		if s == move.Switched {
			b.eachHasTwo(servers, b.acme)
		}
		return nil
	}))
}

// Nor does a record of another organization of the slot count twice that gets its second clock when the new cell has
// conflicts already.
func TestConflictsOfAnotherOrganizationAreKnown(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	slot, second := cells.SlotOf(b.acme), schema.OrganizationID("")
	for n := 0; second == ""; n++ {
		if o := schema.OrganizationID(fmt.Sprint("second-", n)); cells.SlotOf(o) == slot {
			second = o
		}
	}
	b.twice(b.acme)
	b.store(records(second, 0, 2))
	servers := b.servers()
	b.must(b.move(cells.SlotSubject(slot), "b", func(s move.Step) error {
		if s == move.Closed { // servers have looked by then, and know of acme
			b.interactions(servers["b"], b.other)
			b.twice(second)
		}
		if s == move.Switched {
			b.eachHasTwo(servers, b.acme)
			b.eachHasTwo(servers, second)
		}
		return nil
	}))
}
