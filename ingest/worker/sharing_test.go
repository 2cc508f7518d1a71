package worker_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/source/postgres"
	"github.com/runlens/runlens/ingest/worker"
	"github.com/runlens/runlens/ingest/write"
)

// What another source has is not missing, as long as that source is in use; organizations of one source only are not
// concerned.
func TestSourcesThatShareOrganizations(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.insert("acme", 1, 30)
	b.insert("globex", 1, 10)
	// The other source has the records from 16 on, of one of the organizations.
	b.do(`CREATE SCHEMA other; CREATE TABLE other.agents (LIKE agents INCLUDING ALL);
		CREATE TABLE other.runs (LIKE runs INCLUDING ALL); CREATE TABLE other.attributions (LIKE attributions INCLUDING ALL);
		INSERT INTO other.agents SELECT * FROM agents
			WHERE organization_id = 'acme' AND get_byte(uuid_send(agent_id), 15) > 15;
		INSERT INTO other.runs SELECT * FROM runs WHERE organization_id = 'acme' AND get_byte(uuid_send(run_id), 15) > 15;
		INSERT INTO other.attributions SELECT * FROM attributions
			WHERE organization_id = 'acme' AND get_byte(uuid_send(attribution_id), 15) > 15`)
	_, stop := b.start(nil)
	b.untilEqual()
	stop()
	all := strings.NewReplacer("FROM agents", "FROM other.agents", "FROM runs", "FROM other.runs", "FROM attributions",
		"FROM other.attributions").Replace(postgres.DefaultMapping)
	b.open(b.server.URL(), all)
	b.reconcile(func(o *worker.Options) { o.Name = "other" })

	b.do(`DELETE FROM agents WHERE get_byte(uuid_send(agent_id), 15) > 15;
		DELETE FROM runs WHERE get_byte(uuid_send(run_id), 15) > 15;
		DELETE FROM attributions WHERE get_byte(uuid_send(attribution_id), 15) > 15;
		DELETE FROM runs WHERE organization_id = 'globex' AND get_byte(uuid_send(run_id), 15) = 1`)
	b.open(b.server.URL(), postgres.DefaultMapping)
	deleting := func(o *worker.Options) { o.DeleteMissing, o.DeleteMissingShare = true, 1 }
	if found := b.reconcile(deleting); found.Deleted != 1 || found.Missing != 3*15+1 {
		t.Errorf("%+v, want all but one of 46 kept", found)
	}
	retry := write.Retry{Logger: slog.New(slog.DiscardHandler), Patience: patience}
	for _, kind := range normalize.Kinds {
		if found, err := worker.Reset(t.Context(), b.store, retry, "other", kind); err != nil || !found {
			t.Fatalf("%v, %v", found, err)
		}
	}
	if found := b.reconcile(deleting); found.Deleted != 3*15 {
		t.Errorf("without the other source: %+v", found)
	}
}

// A logBuffer keeps what several goroutines log.
type logBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Buffer.Write(p)
}

func (l *logBuffer) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.String()
}

// A worker says at its start what the mapping keeps it from seeing, and what the source lacks; the default layout has
// nothing of that.
func TestAdviceAtTheStart(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	advice := func(change func(*worker.Options)) string {
		t.Helper()
		log := &logBuffer{}
		status, stop := b.start(func(o *worker.Options) {
			o.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))
			if change != nil {
				change(o)
			}
		})
		b.until("caught up", func() bool { return status.Ready() == nil })
		stop()
		return log.text()
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
