package push_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/ingest/move"
	"github.com/runlens/runlens/ingest/purge"
	"github.com/runlens/runlens/ingest/push"
	"github.com/runlens/runlens/ingest/write"
	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/cells"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/schema"
)

var quiet = slog.New(slog.DiscardHandler)

// lines are attribution records of people, in this order, of whom no two begin with one letter. Nobody is no record.
func lines(organization schema.OrganizationID, people ...string) string {
	var text strings.Builder
	for _, person := range people {
		fmt.Fprintf(&text, `{"record":"attribution","organization_id":"%s","attribution_id":"%[2]s","run_id":"%[2]s",`+
			`"agent_id":"%[2]s","user_identifier":"%[3]s@example.com","activity_type":"initiated",`+
			`"run_initiation_type":"human","source":"web","occurred_at":"2026-01-05T09:30:00Z"}`+"\n",
			organization, olaptest.ShortID(len(person)+int((person + "\x00")[0])), person)
	}
	return text.String()
}

func read(t *testing.T, organization schema.OrganizationID, text string) *push.Records {
	t.Helper()
	records, err := push.Read(strings.NewReader(text), "", organization)
	if err != nil {
		t.Fatal(err)
	}
	return records
}

func laneOf(conn driver.Conn, gate *cells.Gate) *push.Lane {
	writer := write.NewWriter(conn, write.Retry{Logger: quiet, Patience: time.Minute})
	writer.Gate = gate
	return push.NewLane(writer, push.NewMetrics(), quiet)
}

// stored is whose attribution records an organization has.
func stored(t *testing.T, conn driver.Conn, organization schema.OrganizationID) string {
	t.Helper()
	var people []string
	err := conn.QueryRow(t.Context(), "SELECT groupArray(user_identifier) FROM (SELECT user_identifier FROM "+
		"attributions FINAL WHERE organization_id = $1 ORDER BY user_identifier)", string(organization)).Scan(&people)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(strings.Join(people, " "), "@example.com", "")
}

// until waits for a condition, which must come true.
func until(condition func() bool) {
	for !condition() {
		time.Sleep(time.Millisecond)
	}
}

// A heldConn does something when an insert is about to begin, once.
type heldConn struct {
	driver.Conn
	do      func()
	inserts atomic.Int32
}

func (c *heldConn) PrepareBatch(
	ctx context.Context, statement string, options ...driver.PrepareBatchOption,
) (driver.Batch, error) {
	c.inserts.Add(1)
	if do := c.do; do != nil {
		c.do = nil
		do()
	}
	return c.Conn.PrepareBatch(ctx, statement, options...)
}

// Who is purged after a body was read is rejected in the line of its record, and nobody else is, whoever else's records
// the insert has. Requests that come while an insert is under way are stored by the next one, all of them together. One
// whose client goes away meanwhile holds nobody up, and its memory is free in the end.
func TestLane(t *testing.T) {
	conn := &heldConn{Conn: olaptest.OpenStore(t).Conn()}
	lane := laneOf(conn, nil)
	gone, leave := context.WithCancel(t.Context())
	var released atomic.Int32
	release := func() { released.Add(1) }
	first := read(t, "acme", lines("acme", "bob"))
	others := []*push.Records{
		read(t, "acme", lines("acme", "", "cyd", "dan")), read(t, "globex", lines("globex", "ada", "eve")),
		read(t, "acme", "\n"+lines("acme", "fay", "gus")+"{}\n"+lines("acme", "", "", "", "ada", "hal")),
	}
	var pushing sync.WaitGroup
	conn.do = func() { // the insert of the first one
		if err := purge.Person("acme", "ada@example.com").Run(t.Context(), conn.Conn, func(purge.Step) {}); err != nil {
			t.Error(err)
		}
		for _, r := range others {
			pushing.Go(func() {
				if err := lane.Store(t.Context(), r, release); err != nil {
					t.Error(err)
				}
			})
		}
		until(func() bool { return lane.Waiting() >= len(others) })
		leaving := make(chan error)
		go func() { leaving <- lane.Store(gone, read(t, "initech", lines("initech", "ivy")), release) }()
		until(func() bool { return lane.Waiting() >= len(others)+1 })
		leave()
		if err := <-leaving; !errors.Is(err, context.Canceled) {
			t.Errorf("a client that left: %v", err)
		}
	}
	if err := lane.Store(t.Context(), first, release); err != nil {
		t.Fatal(err)
	}
	pushing.Wait()
	lane.Close()
	for organization, want := range map[schema.OrganizationID]string{
		"acme": "bob cyd dan fay gus hal", "globex": "ada eve", "initech": "ivy",
	} {
		if got := stored(t, conn, organization); got != want {
			t.Errorf("%s has %s, want %s", organization, got, want)
		}
	}
	for i, want := range []string{"3 2 [{1 user_identifier", "2 2 []", "8 3 [{4 record is required"} {
		r := others[i]
		if got := fmt.Sprint(r.Lines, " ", r.Stored(), " ", r.Rejects); !strings.HasPrefix(got, want) {
			t.Errorf("%d: %s, want %s", i, got, want)
		}
	}
	if got := others[2].Rejects; len(got) == 0 || got[len(got)-1].Line != 8 ||
		!strings.Contains(got[len(got)-1].Error, "purged") {
		t.Errorf("the purged person is not rejected in line 8: %v", got)
	}
	if inserts := conn.inserts.Load(); inserts != 2 || released.Load() != 5 {
		t.Errorf("%d inserts and %d released, want 2 and 5", inserts, released.Load())
	}
}

// While an organization is being moved its records are refused, also those of an insert that had begun before, and
// those of others are stored. Then they are stored where it is.
func TestLanesDuringAMove(t *testing.T) {
	conns := map[string]driver.Conn{"a": olaptest.OpenStore(t).Conn(), "b": olaptest.OpenStore(t).Conn()}
	placement, err := cells.Find(t.Context(), []cells.Cell{{Name: "a", Weight: 1}, {Name: "b", Weight: 1}}, conns)
	if err != nil {
		t.Fatal(err)
	}
	directory := cells.NewDirectory(placement)
	lanes := map[string]*push.Lane{}
	for name, conn := range conns {
		lanes[name] = laneOf(conn, directory.NewGate(name, conn))
	}
	var here []schema.OrganizationID // in a, in different slots
	for n := 0; len(here) < 2; n++ {
		o := schema.OrganizationID(fmt.Sprint("org-", n))
		if placement.Of(o) == "a" && (len(here) == 0 || cells.SlotOf(o) != cells.SlotOf(here[0])) {
			here = append(here, o)
		}
	}
	moved, stays := here[0], here[1]
	store := func(cell string, organization schema.OrganizationID, person string) error {
		return lanes[cell].Store(t.Context(), read(t, organization, lines(organization, person)), func() {})
	}
	refused := 0
	reached := func(step move.Step) error {
		if step == move.Closed {
			if err := store("a", moved, "bob"); errors.Is(err, push.ErrMoving) {
				refused++
			}
			if err := store("a", stays, "cyd"); err != nil {
				t.Errorf("another organization: %v", err)
			}
		}
		return nil
	}
	if err := store("a", moved, "ada"); err != nil {
		t.Fatal(err)
	}
	held := &heldConn{Conn: conns["a"]}
	held.do = func() {
		err = move.Run(t.Context(), move.Options{Cells: conns, Logger: quiet, Secrets: olap.AcceptCursorSecrets,
			Progress: func(uint64) {}, Reached: reached, Lease: 50 * time.Millisecond, Margin: 50 * time.Millisecond},
			cells.OrganizationSubject(moved), "b")
	}
	before := laneOf(held, directory.NewGate("a", held)).
		Store(t.Context(), read(t, moved, lines(moved, "eve")), func() {})
	if err != nil || !errors.Is(before, push.ErrMoving) {
		t.Fatalf("moved: %v; an insert that had begun before: %v", err, before)
	}
	if err := store("a", moved, "dan"); !errors.Is(err, push.ErrMoving) || refused != 1 {
		t.Errorf("the old cell: %v, refused %d times during the move", err, refused)
	}
	if cell := directory.Placement().Of(moved); cell != "b" {
		t.Errorf("the organization is in %s by what the refusal read", cell)
	}
	if err := store("b", moved, "bob"); err != nil {
		t.Fatal(err)
	}
	a, b, other := stored(t, conns["a"], moved), stored(t, conns["b"], moved), stored(t, conns["a"], stays)
	if a != "eve" || b != "ada bob" || other != "cyd" {
		// What is left in a was not acknowledged. It goes when the organization comes back (package move).
		t.Errorf("%q in a, %q in b, and %q of the other organization", a, b, other)
	}
}
