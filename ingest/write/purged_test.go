package write_test

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/purge"
	"github.com/runlens/runlens/ingest/write"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/rollup"
	"github.com/runlens/runlens/schema"
)

// A pausedConn does something when the first insert into a table is about to begin, as if its process was paused
// before it, and can fail after an insert.
type pausedConn struct {
	driver.Conn
	table string
	pause func()
	after func(context.Context) // when the insert is stored, before anything else
}

func (c *pausedConn) PrepareBatch(ctx context.Context, query string, options ...driver.PrepareBatchOption,
) (driver.Batch, error) {
	held := strings.HasPrefix(query, "INSERT INTO "+c.table+" ")
	if held && c.pause != nil {
		pause := c.pause
		c.pause = nil
		pause()
	}
	batch, err := c.Conn.PrepareBatch(ctx, query, options...)
	if held && c.after != nil {
		return pausedBatch{batch, ctx, c}, err
	}
	return batch, err
}

type pausedBatch struct {
	driver.Batch
	ctx  context.Context
	conn *pausedConn
}

func (b pausedBatch) Send() error {
	err := b.Batch.Send()
	b.conn.after(b.ctx)
	return err
}

// began is before every purge of these tests.
var began = time.Now()

// ofAda has a run and a record of ada and of bob each, some days before or after a purge that happens now.
func ofAda(days int) *write.Batch {
	var b write.Batch
	clock := began.AddDate(0, 0, days).UnixMilli()
	for i, who := range []string{"ada@example.com", "bob@example.com"} {
		id, name := olaptest.ID(10*days+20+i), "Name"
		b.Runs = append(b.Runs, normalize.Run{OrganizationID: "acme", RunID: id, AgentID: id, RunKind: "agent",
			Status: "RUNNING", InitiatorIdentifier: &who, InitiatorName: &name, CreatedAt: clock, UpdatedAt: clock})
		b.Attributions = append(b.Attributions, normalize.Attribution{OrganizationID: "acme", AttributionID: id, RunID: id,
			AgentID: id, UserIdentifier: who, ActivityType: "initiated", RunInitiationType: "human", Source: "web",
			OccurredAt: clock})
	}
	return &b
}

func purgeAda(t *testing.T, conn driver.Conn) {
	t.Helper()
	if err := purge.Person("acme", "ada@example.com").Run(t.Context(), conn, func(purge.Step) {}); err != nil {
		t.Fatal(err)
	}
}

func numberOf(t *testing.T, conn driver.Conn, query string) (n uint64) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// outside wants that of ada only what happened after the purge is stored, and everything of bob.
func outside(t *testing.T, when string, conn driver.Conn) {
	t.Helper()
	later := ofAda(1)
	if err := write.NewWriter(conn, quiet).Write(t.Context(), later); err != nil || later.Len() != 4 {
		t.Fatalf("%d of 4 later records are stored, %v", later.Len(), err)
	}
	refresher := rollup.New(conn, quiet.Logger, 0)
	if err := refresher.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	const ada = "'ada@example.com'"
	const initiator = "tupleElement(record, 'initiator_identifier')"
	for query, want := range map[string]uint64{
		"attributions FINAL WHERE user_identifier = " + ada:                   1,
		"attributions WHERE occurred_at < now() AND user_identifier = " + ada: 0,
		"attributions FINAL": 3,
		"runs FINAL":         4,
		"runs WHERE created_at < now() AND " + initiator + " = " + ada:    0,
		"runs FINAL WHERE isNull(tupleElement(record, 'initiator_name'))": 1,
		"runs FINAL WHERE " + initiator + " = " + ada:                     1,
	} {
		if n := numberOf(t, conn, "SELECT count() FROM "+query); n != want {
			t.Errorf("%s: %d, want %d: %s", when, n, want, query)
		}
	}
	if found, err := rollup.Check(t.Context(), conn); err != nil || len(found) > 0 {
		t.Errorf("%s: the rollup differs: %+v, %v", when, found, err)
	}
}

// What was read before a purge does not survive it: read long before, held between the reading and any of the inserts,
// or inserted again by an attempt that follows one of which nobody knows what became of it.
func TestWhatWasReadBeforeAPurgeDoesNotSurviveIt(t *testing.T) {
	for _, table := range []string{schema.TableRuns, schema.TableAttributions, "again", "nothing"} {
		conn := olaptest.OpenStore(t).Conn()
		b := ofAda(-1)
		paused := &pausedConn{Conn: conn, table: table, pause: func() { purgeAda(t, conn) }}
		var through driver.Conn = paused
		switch table {
		case "again": // the first attempt is stored and fails; the person is purged before the second
			paused.table = schema.TableAttributions
			paused.pause = nil
			through = &flaky{Conn: conn, failures: 1, after: true, err: io.ErrUnexpectedEOF}
		case "nothing":
			purgeAda(t, conn)
		}
		retry := quiet
		if table == "again" {
			once := false
			retry.Count = func() {
				if !once {
					once = true
					purgeAda(t, conn)
				}
			}
		}
		if err := write.NewWriter(through, retry).Write(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		outside(t, table, conn)
		if len(b.Excluded) != 1 || b.Anonymous != 1 || len(b.Attributions) != 1 {
			t.Errorf("%s: %d records stay out, %d runs are anonymous, %d records are stored", table, len(b.Excluded),
				b.Anonymous, len(b.Attributions))
		}
	}
}

// A countingConn counts readings of the list of purged people.
type countingConn struct {
	driver.Conn
	readings int
}

func (c *countingConn) QueryRow(ctx context.Context, query string, args ...any) driver.Row {
	if strings.Contains(query, schema.TablePurgedPeople) {
		c.readings++
	}
	return c.Conn.QueryRow(ctx, query, args...)
}

// The list is read after every insert, and before it only where it has not been read lately.
func TestReadingsOfTheListOfPurgedPeople(t *testing.T) {
	counting := &countingConn{Conn: olaptest.OpenStore(t).Conn()}
	w := write.NewWriter(counting, quiet)
	for batch, began := 1, time.Now(); batch <= 100; batch++ {
		if err := w.Write(t.Context(), ofAda(-1)); err != nil {
			t.Fatal(err)
		}
		seconds := int(time.Since(began)/time.Second) + 1
		if n := counting.readings; n <= batch || n > batch+seconds {
			t.Fatalf("%d readings for %d batches in %d s", n, batch, seconds)
		}
		if batch >= 5 && time.Since(began) > time.Second {
			break
		}
	}
}

// Of two batches of a writer the one whose reading of the list began later applies what it has read, whatever the other
// one is answered meanwhile.
func TestAnEarlierReadingOfTheListHidesNobody(t *testing.T) {
	conn := olaptest.OpenStore(t).Conn()
	held := olaptest.Hold(conn)
	w := write.NewWriter(held, quiet)
	ada := &ofAda(-1).Attributions[0]
	for _, when := range []string{"the first reading", "a later one"} {
		late := *ada
		if when == "a later one" {
			late.UserIdentifier = "bob@example.com"
		}
		held.After(schema.TablePurgedPeople, func() {
			if err := purge.Person("acme", late.UserIdentifier).Run(t.Context(), conn, func(purge.Step) {}); err != nil {
				t.Error(err)
			}
			if err := w.ReadPurged(t.Context()); err != nil {
				t.Error(err)
			}
		})
		if err := w.ReadPurged(t.Context()); err != nil {
			t.Fatal(err)
		}
		if w.Excludes(&late) == nil {
			t.Errorf("%s: who was purged meanwhile is forgotten", when)
		}
	}
}

// What a writer stored that was killed right after its insert is taken out by a server, before it is in the rollup.
func TestAServerTakesOutWhatADeadWriterStored(t *testing.T) {
	for _, table := range []string{schema.TableRuns, schema.TableAttributions} {
		conn := olaptest.OpenStore(t).Conn()
		ctx, kill := context.WithCancel(t.Context())
		dying := &pausedConn{Conn: conn, table: table, pause: func() { purgeAda(t, conn) },
			after: func(context.Context) { kill() }}
		if err := write.NewWriter(dying, quiet).Write(ctx, ofAda(-1)); err == nil {
			t.Fatal("the writer did not die")
		}
		left := "SELECT count() FROM attributions WHERE user_identifier = 'ada@example.com'"
		if table == schema.TableRuns {
			left = "SELECT count() FROM runs WHERE tupleElement(record, 'initiator_identifier') = 'ada@example.com'"
		}
		if n := numberOf(t, conn, left); n != 1 {
			t.Fatalf("%s: %d rows of ada are left by the dead writer, want 1: this test proves nothing", table, n)
		}
		refresher := rollup.New(conn, slog.New(slog.DiscardHandler), 0)
		refresher.TakeOutLate(func(ctx context.Context, o schema.OrganizationID, identifier string, until time.Time) error {
			return purge.Late(o, identifier, until).Run(ctx, conn, func(purge.Step) {})
		})
		if err := refresher.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := numberOf(t, conn, left); n != 0 {
			t.Errorf("%s: %d rows of ada are left after a refresh", table, n)
		}
		if err := write.NewWriter(conn, quiet).Write(t.Context(), ofAda(-1)); err != nil { // what it had not stored
			t.Fatal(err)
		}
		outside(t, table, conn)
	}
}
