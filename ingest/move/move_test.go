package move_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/ingest/move"
	"github.com/runlens/runlens/ingest/purge"
	"github.com/runlens/runlens/ingest/purged"
	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/audit"
	"github.com/runlens/runlens/olap/cells"
	"github.com/runlens/runlens/olap/keys"
	"github.com/runlens/runlens/olap/rollup"
	"github.com/runlens/runlens/schema"
)

// fill stores something of everything that an organization has, in the cell a.
func (b *bed) fill(organization schema.OrganizationID) {
	b.Helper()
	ctx, conn := b.Context(), b.conns["a"]
	b.store(records(organization, 0, 20))
	moved := records(organization, 3, 1) // a run whose created_at changed, which is a conflict
	moved.Runs[0].CreatedAt += 3_600_000
	moved.Runs[0].UpdatedAt += 1000
	b.store(moved)
	b.must(purge.Person(organization, "bob@x.example").Run(ctx, conn, func(purge.Step) {}))
	b.must(audit.Do(ctx, conn, audit.Action{Name: "test", OrganizationID: organization}, func(ctx context.Context) error {
		return keys.NewStore(conn).Put(ctx, schema.APIKey{KeyID: "key-" + string(organization), OrganizationID: organization,
			Scopes: []string{"analytics:read"}, CreatedAt: created})
	}))
	b.must(conn.Exec(ctx, "INSERT INTO usage_log (organization_id, at, key_id, questions, took_us)"+
		" SELECT $1, now64(3), 'k', 1, number FROM numbers(3)", string(organization)))
}

// A move takes everything of an organization along as it is, leaves nothing behind, and nobody else is touched; also
// when it moves back.
func TestAMove(t *testing.T) {
	t.Parallel()
	began := time.Now().Add(-time.Second)
	b := newBed(t)
	b.fill(b.acme)
	b.fill(b.other)
	b.must(rollup.New(b.conns["a"], quiet, 0).Refresh(t.Context()))
	others := b.rows("a", b.other)
	for _, way := range []struct{ from, to string }{{"a", "b"}, {"b", "a"}} {
		b.must(rollup.New(b.conns[way.from], quiet, 0).Refresh(t.Context()))
		before := b.rows(way.from, b.acme)
		if len(before) != 7 {
			t.Fatalf("there is nothing in some tables: %v", before)
		}
		b.must(b.move(b.subject(), way.to, nil))
		differ(t, b.rows(way.to, b.acme), before)
		if left := b.rows(way.from, b.acme); len(left) > 0 {
			t.Errorf("%s still has %v", way.from, left)
		}
		if err := b.move(b.subject(), way.to, nil); !errors.Is(err, move.ErrThere) {
			t.Errorf("once more: %v", err)
		}
		b.store(records(b.acme, 5, 1)) // goes where it is, and changes nothing
		bob := purged.Person{Organization: b.acme, Identifier: "bob@x.example"}
		list, err := purged.Read(t.Context(), b.conns[way.to], nil)
		b.must(err)
		if until, ok := list.Until(bob); !ok || until.Before(began) {
			t.Errorf("%s does not know who was purged", way.to)
		}
		secrets, err := olap.CursorSecrets(t.Context(), b.conns[way.to])
		if err != nil || len(secrets) != 2 {
			t.Errorf("%d secrets open cursors in %s, %v", len(secrets), way.to, err)
		}
		b.must(rollup.New(b.conns[way.to], quiet, 0).Refresh(t.Context()))
		b.repaired(way.to)
	}
	differ(t, b.rows("a", b.other), others)
	bob := purged.Person{Organization: b.acme, Identifier: "bob@x.example"}
	if err := purged.Lift(t.Context(), b.conns["a"], bob); err != nil {
		t.Errorf("in another cell than where he was purged: %v", err)
	}
}

// differ says in which tables rows differ.
func differ(t *testing.T, got, want map[string]string) {
	t.Helper()
	for _, table := range slices.Sorted(maps.Keys(want)) {
		if got[table] != want[table] {
			t.Errorf("%s has\n%.2000s\nwant\n%.2000s", table, got[table], want[table])
		}
	}
}

// checker is what a server of a cell has.
func (b *bed) checker(cell string, said *bytes.Buffer) *rollup.Checker {
	here := func(ctx context.Context) (func(schema.OrganizationID) bool, error) {
		told, err := cells.Read(ctx, b.conns[cell])
		return func(o schema.OrganizationID) bool { return told.Reads(cell, o) }, err
	}
	return rollup.NewChecker(b.conns[cell], here, slog.New(slog.NewTextHandler(said, nil)))
}

// repaired waits until a server would have built the rollup of what arrived, and compares it.
func (b *bed) repaired(cell string) {
	b.Helper()
	var said bytes.Buffer
	checker := b.checker(cell, &said)
	for damages := uint64(1); damages > 0; {
		_, err := checker.Step(b.Context())
		b.must(err)
		b.must(b.conns[cell].QueryRow(b.Context(),
			"SELECT count() FROM rollup_log WHERE kind = 'damage' AND organization_id != ''").Scan(&damages))
	}
	if !strings.Contains(said.String(), "is built again") || strings.Contains(said.String(), "is damaged") {
		b.Errorf("a move is no damage, but %s says:\n%s", cell, said.String())
	}
	found, err := rollup.Check(b.Context(), b.conns[cell])
	if err != nil || len(found) > 0 {
		b.Errorf("the rollup of %s differs: %v, %v", cell, found, err)
	}
}

// A slot takes its organizations along, and leaves those that are pinned.
func TestAMoveOfASlot(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	pinned := schema.OrganizationID("")
	for n := 0; pinned == ""; n++ {
		one := schema.OrganizationID(fmt.Sprint("pinned-", n))
		if cells.SlotOf(one) == cells.SlotOf(b.acme) {
			pinned = one
		}
	}
	b.must(cells.Write(t.Context(), b.conns["a"], cells.OrganizationSubject(pinned),
		cells.Place{Cell: "a", Revision: cells.NextRevision(1), State: cells.Open}))
	for _, organization := range []schema.OrganizationID{b.acme, b.other, pinned} {
		b.store(records(organization, 0, 3))
	}
	b.must(b.conns["a"].Exec(t.Context(), "INSERT INTO checkpoints (name, position, revision) VALUES"+
		" ('worker:x:run', 'here', 1), ('arrived:7:worker:x:run', 'not yet here', 1),"+
		" ('arrived:8:worker:x:run', 'done', 1), ('arrived:8:worker:x:run', '', 2)"))
	b.must(b.move(cells.SlotSubject(cells.SlotOf(b.acme)), "b", nil))
	var arrived []string // how far workers had come in the old cell, and in the one before
	b.must(b.conns["b"].QueryRow(t.Context(), "SELECT arraySort(groupUniqArray(position)) FROM checkpoints"+
		" WHERE name LIKE 'arrived:%:worker:x:run'").Scan(&arrived))
	if !slices.Equal(arrived, []string{"here", "not yet here"}) {
		t.Errorf("the new cell's worker goes back to %q", arrived)
	}
	p, err := cells.Find(t.Context(), []cells.Cell{{Name: "a"}, {Name: "b"}}, b.conns)
	b.must(err)
	if p.Of(b.acme) != "b" || p.Of(b.other) != "a" || p.Of(pinned) != "a" || p.Count("b") != 129 {
		t.Errorf("%s, %s and %s are in %s, %s and %s, and b has %d slots", b.acme, b.other, pinned, p.Of(b.acme),
			p.Of(b.other), p.Of(pinned), p.Count("b"))
	}
	if n := b.count("a", b.acme); n > 0 {
		t.Errorf("a still has %d records", n)
	}
	for organization, cell := range map[schema.OrganizationID]string{b.acme: "b", b.other: "a", pinned: "a"} {
		b.store(records(organization, 3, 1))
		if n := b.count(cell, organization); n != 4 {
			t.Errorf("%s has %d records in %s, want 4", organization, n, cell)
		}
	}
}
