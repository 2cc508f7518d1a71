package worker_test

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/source/postgres"
	"github.com/runlens/runlens/ingest/worker"
	"github.com/runlens/runlens/ingest/write"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/olaptest/logtest"
	"github.com/runlens/runlens/schema"
)

// idsOf are the columns with the id of a record, by the tables of the source.
var idsOf = map[string]string{"agents": "agent_id", "runs": "run_id", "attributions": "attribution_id"}

// addOther makes another source in the database, with those of the records for which a condition is true of the number
// that is the last byte of the id, and returns its mapping.
func (b *bed) addOther(which string) (mapping string) {
	b.Helper()
	b.do("CREATE SCHEMA other")
	for table, id := range idsOf {
		b.do("CREATE TABLE other." + table + " (LIKE " + table + " INCLUDING ALL); INSERT INTO other." + table +
			" SELECT r.* FROM " + table + " r, get_byte(uuid_send(" + id + "), 15) AS n WHERE " + which)
	}
	return strings.NewReplacer("FROM agents", "FROM other.agents", "FROM runs", "FROM other.runs", "FROM attributions",
		"FROM other.attributions").Replace(postgres.DefaultMapping)
}

// sharedBed has two organizations, and another source with some of their records, which was compared and is open.
func sharedBed(t *testing.T, which string) (b *bed, theirs string) {
	t.Parallel()
	b = newBed(t)
	b.insert("acme", 1, 10)
	b.insert("globex", 1, 10)
	theirs = b.addOther(which)
	b.open(b.server.URL(), theirs)
	b.reconcile(other)
	return b, theirs
}

// otherGets has the other source get an organization of the first one, changed in both just now.
func (b *bed) otherGets(organization string) {
	b.Helper()
	where := " WHERE organization_id = '" + organization + "'"
	for table := range idsOf {
		b.do("UPDATE " + table + " SET updated_at = clock_timestamp()" + where + "; INSERT INTO other." + table +
			" SELECT * FROM " + table + where)
	}
}

// drop takes records out of the source that the worker began with.
func (b *bed) drop(which string) {
	b.Helper()
	for table, id := range idsOf {
		b.do("DELETE FROM " + table + " r USING (SELECT organization_id AS o, " + id + " AS i, get_byte(uuid_send(" + id +
			"), 15) AS n FROM " + table + ") AS d WHERE r.organization_id = o AND r." + id + " = i AND (" +
			strings.ReplaceAll(which, "organization_id", "o") + ")")
	}
}

// theirsAreKept has the worker of the first source compare, which lacks 15 records that only the other source has.
func (b *bed) theirsAreKept(when string) {
	b.Helper()
	b.open(b.server.URL(), postgres.DefaultMapping)
	if found := b.reconcile(deleting); found.Missing != 3*5 || found.Deleted != 0 {
		b.Errorf("%s: %+v, want 15 that the other source has kept", when, found)
	}
}

func other(o *worker.Options)    { o.Name = "other" }
func deleting(o *worker.Options) { o.DeleteMissing, o.DeleteMissingShare = true, 1 }

// What another source has is not missing, as long as that source is in use; organizations of one source only are not
// concerned.
func TestSourcesThatShareOrganizations(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.insert("acme", 1, 30)
	b.insert("globex", 1, 10)
	theirs := b.addOther("organization_id = 'acme' AND n > 15")
	b.copied()
	b.open(b.server.URL(), theirs)
	b.reconcile(other)
	b.drop("n > 15 OR organization_id = 'globex' AND n = 1")
	b.open(b.server.URL(), postgres.DefaultMapping)
	if found := b.reconcile(deleting); found.Deleted != 3 || found.Missing != 3*15+3 {
		t.Errorf("%+v, want all but 3 of 48 kept", found)
	}
	retry := write.Retry{Logger: slog.New(slog.DiscardHandler), Patience: patience}
	for _, kind := range normalize.Kinds {
		b.note("other", kind, map[string]any{})
		if found, err := worker.Reset(t.Context(), b.store, retry, "other", kind); err != nil || !found {
			t.Fatalf("%v, %v", found, err)
		}
	}
	if found := b.reconcile(deleting); found.Deleted != 3*15 {
		t.Errorf("without the other source: %+v", found)
	}
}

// Another source gets an organization after its last comparison.
func TestAnOrganizationThatTheOtherSourceGets(t *testing.T) {
	b, _ := sharedBed(t, "organization_id = 'acme'")
	b.otherGets("globex")
	b.copyOnce(other)
	b.drop("organization_id = 'globex' AND n > 5")
	b.theirsAreKept("before the other source is compared again")
}

// Another source loses an organization, which a comparison notices, and gets it again, when that comparison has read
// the source or is over. The worker that copies it then is another one, which has copied it before.
func TestAnOrganizationThatTheOtherSourceGetsAgain(t *testing.T) {
	for _, when := range olaptest.Some(2, "during the comparison", "after it") {
		t.Run(when, func(t *testing.T) {
			b, theirs := sharedBed(t, "true")
			status, stop := b.start(other)
			b.untilCaughtUp(status, normalize.Kinds...)
			completed := fmt.Sprintf("SELECT count() FROM runs FINAL WHERE organization_id = 'globex' AND %s = %d",
				schema.StatusBits("state"), schema.StatusCompleted.Bits())
			b.do("UPDATE other.runs SET status = 'COMPLETED', updated_at = clock_timestamp() WHERE organization_id = 'globex'")
			b.until("copied", func() bool { return b.count(completed) == 10 })
			lose := func() {
				for table := range idsOf {
					b.do("DELETE FROM other." + table + " WHERE organization_id = 'globex'")
				}
			}
			get := func() {
				b.otherGets("globex")
				b.until("copied again", func() bool { return b.count(completed) == 0 })
			}
			lose()
			held := olaptest.Hold(b.store)
			if when == "after it" {
				b.reconcile(other)
				b.reconcile(other)
				get()
			} else {
				held.After("v_day", get)
				b.reconcile(func(o *worker.Options) {
					other(o)
					o.Conn, o.PollInterval = held, time.Hour // after which it would copy them, too
				})
			}
			stop()
			b.drop("organization_id = 'globex' AND n > 5")
			b.theirsAreKept("before the other source is compared again")

			lose()
			b.open(b.server.URL(), theirs)
			b.reconcile(other)
			b.reconcile(other)
			b.open(b.server.URL(), postgres.DefaultMapping)
			if found := b.reconcile(deleting); found.Deleted != 3*5 {
				t.Errorf("when the other source has not got it any more: %+v", found)
			}
		})
	}
}

// Rows of another source are stored that has never copied anything before, and whose process dies then.
func TestASourceIsKnownBeforeItsRows(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.insert("acme", 1, 10)
	dying := &dyingConn{Conn: b.store, before: "INSERT INTO runs "}
	options := b.options(other)
	options.Conn = dying
	if err := worker.Run(t.Context(), options); !errors.Is(err, errDied) {
		t.Fatal(err)
	}
	names, err := b.log().Names(t.Context(), schema.CheckpointOfWorkers)
	if err != nil || !slices.Contains(names, schema.CheckpointOfWorkers+"other:run") {
		t.Errorf("before the first run is stored there are the checkpoints %q, %v", names, err)
	}
}

// A move brings an organization of which another source has rows. What that source has is known only when it was
// compared again, before and after its worker took the notes of the move away.
func TestWhatAMoveBringsOfAnotherSource(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.insertLongAgo("acme", 1, 10)
	b.insertLongAgo("moved", 1, 10)
	theirs := b.addOther("true")
	b.open(b.server.URL(), theirs)
	b.reconcile(func(o *worker.Options) {
		other(o)
		onlyAcme(o)
	})
	// Everything had been copied where the organization was.
	for _, kind := range normalize.Kinds {
		now := time.Now()
		at := map[string]any{"mapping": b.source.Mapping().Fingerprint(kind), "until": now, "certain_until": now}
		b.note("other", kind, at)
	}
	b.open(b.server.URL(), postgres.DefaultMapping)
	b.copyOnce(nil)
	b.drop("organization_id = 'moved' AND n > 5")
	b.theirsAreKept("before the other worker begins")
	b.open(b.server.URL(), theirs)
	b.copyOnce(other)
	if notes, err := b.log().Names(t.Context(), schema.CheckpointArrived); err != nil || len(notes) > 0 {
		t.Fatalf("left are the notes %q, %v", notes, err)
	}
	b.theirsAreKept("when it has taken the notes away")
}

// A worker says at its start what the mapping keeps it from seeing, and what the source lacks; the default layout has
// nothing of that.
func TestAdviceAtTheStart(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	advice := func(change func(*worker.Options)) string {
		t.Helper()
		log := &logtest.Buffer{}
		b.copyOnce(func(o *worker.Options) {
			o.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))
			if change != nil {
				change(o)
			}
		})
		return log.String()
	}
	b.insert("acme", 1, 5)
	if log := advice(nil); log != "" {
		t.Errorf("of the default layout: %s", log)
	}
	b.do(`CREATE TABLE people (id uuid PRIMARY KEY, address text); ALTER TABLE runs ADD person uuid, ADD deleted boolean;
		DROP INDEX attributions_changes`)
	const runs = "FROM runs"
	for _, c := range []struct {
		address, from string
		says          []string
		not           string
	}{
		{"initiator_identifier", "FROM runs WHERE deleted IS NOT TRUE", []string{"may leave rows out"}, "whose changes"},
		{
			"p.address AS initiator_identifier", "FROM runs LEFT JOIN people AS p ON p.id = person",
			[]string{"whose changes do not move", "people"}, "may leave rows out",
		},
		{
			"p.address AS initiator_identifier", "FROM runs JOIN people AS p ON p.id = person",
			[]string{"may leave rows out", "whose changes do not move", "people"}, "`",
		},
		{
			"(SELECT address FROM people AS p WHERE p.id = person) AS initiator_identifier", runs,
			[]string{"whose changes do not move", "people"}, "may leave rows out",
		},
	} {
		b.open(b.server.URL(), strings.NewReplacer(runs, c.from, "initiator_identifier", c.address).
			Replace(postgres.DefaultMapping))
		log := advice(nil)
		for _, says := range append(c.says, "CREATE INDEX CONCURRENTLY ON", "(updated_at, attribution_id)") {
			if !strings.Contains(log, says) {
				t.Errorf("%s %s: not %q in %s", c.address, c.from, says, log)
			}
		}
		if strings.Contains(log, c.not) {
			t.Errorf("%s %s: %q in %s", c.address, c.from, c.not, log)
		}
		if log := advice(func(o *worker.Options) { o.DeleteMissing = true }); strings.Contains(log, "may leave rows out") {
			t.Errorf("with DeleteMissing: %s", log)
		}
	}
	// A number for an id would have every record rejected.
	b.do("ALTER TABLE runs ADD number bigint")
	b.open(b.server.URL(), strings.Replace(postgres.DefaultMapping, "kind, parent_run_id",
		"kind, number AS parent_run_id", 1))
	const line = "md5('run:' || X)::uuid AS parent_run_id"
	if err := b.source.Check(t.Context()); err == nil || !strings.Contains(err.Error(), line) {
		t.Error(err)
	}
}
