package move_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/runlens/runlens/ingest/move"
	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/write"
	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/cells"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/schema"
)

// lease is short: nothing here relies on what a cell said earlier.
const lease = 50 * time.Millisecond

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// A bed is the cells a and b. The organizations acme and other are in a, in different slots.
type bed struct {
	*testing.T
	conns       map[string]driver.Conn
	directory   *cells.Directory
	acme, other schema.OrganizationID
}

func newBed(t *testing.T) *bed {
	t.Helper()
	b := &bed{T: t, conns: map[string]driver.Conn{}}
	for _, name := range []string{"a", "b"} {
		b.conns[name] = olaptest.OpenStore(t).Conn()
	}
	p := b.forget()
	for n := 0; b.other == ""; n++ {
		organization := schema.OrganizationID(fmt.Sprint("org-", n))
		switch {
		case p.Of(organization) != "a":
		case b.acme == "":
			b.acme = organization
		case cells.SlotOf(organization) != cells.SlotOf(b.acme):
			b.other = organization
		}
	}
	return b
}

// forget makes the writers read again what the cells say.
func (b *bed) forget() *cells.Placement {
	b.Helper()
	return b.hear(b.conns)
}

// hear makes the writers read what some of the cells say.
func (b *bed) hear(reached map[string]driver.Conn) *cells.Placement {
	b.Helper()
	var list []cells.Cell
	for _, name := range b.names() {
		list = append(list, cells.Cell{Name: name, Weight: 1})
	}
	p, err := cells.Find(b.Context(), list, reached)
	b.must(err)
	b.directory = cells.NewDirectory(p)
	return p
}

func (b *bed) names() []string { return slices.Sorted(maps.Keys(b.conns)) }

// add adds a cell in which nothing is.
func (b *bed) add(name string) {
	b.Helper()
	b.conns[name] = olaptest.OpenStore(b.T).Conn()
	b.must(b.forget().Admit(b.Context(), name, b.conns[name]))
}

func (b *bed) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// move moves a subject, and ends with an error of the step.
func (b *bed) move(subject cells.Subject, to string, reached func(move.Step) error) error {
	return b.moveOver(b.conns, subject, to, reached)
}

func (b *bed) moveOver(
	conns map[string]driver.Conn, subject cells.Subject, to string, reached func(move.Step) error,
) error {
	if reached == nil {
		began := time.Now()
		reached = func(s move.Step) error { b.Log(s, time.Since(began)); return nil }
	}
	return move.Run(b.Context(), b.options(conns, reached), subject, to)
}

func (b *bed) options(conns map[string]driver.Conn, reached func(move.Step) error) move.Options {
	return move.Options{Cells: conns, Logger: quiet, Secrets: olap.AcceptCursorSecrets, Progress: func(uint64) {},
		Reached: reached, Lease: lease, Margin: lease}
}

func (b *bed) subject() cells.Subject { return cells.OrganizationSubject(b.acme) }

// writer stores records where their organizations are.
func (b *bed) writer(conns map[string]driver.Conn) *write.Split { return b.loudWriter(quiet, conns) }

// loudWriter is writer with a log.
func (b *bed) loudWriter(logger *slog.Logger, conns map[string]driver.Conn) *write.Split {
	names := b.names()
	var writers []*write.Writer
	for _, name := range names {
		writer := write.NewWriter(conns[name], write.Retry{Logger: logger})
		writer.Gate = b.directory.NewGate(name, conns[name])
		writers = append(writers, writer)
	}
	return write.NewSplit(func(o schema.OrganizationID) int {
		return slices.Index(names, b.directory.Placement().Of(o))
	}, writers...)
}

var created = time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)

// records are so many runs and attribution records of an organization, with the numbers from on, in two months.
func records(organization schema.OrganizationID, from, n int) *write.Batch {
	b := &write.Batch{}
	for i := from; i < from+n; i++ {
		id := uuid.NewSHA1(uuid.Nil, []byte(fmt.Sprint(i)))
		at := created.AddDate(0, i%2, 0).Add(time.Duration(i) * time.Second).UnixMilli()
		ada := "ada@x.example"
		b.Agents = append(b.Agents, normalize.Agent{OrganizationID: organization, AgentID: id, Name: fmt.Sprint("agent ", i)})
		b.Runs = append(b.Runs, normalize.Run{OrganizationID: organization, RunID: id, AgentID: id, RunKind: "agent",
			Status: "COMPLETED", InitiatorIdentifier: &ada, CreatedAt: at, UpdatedAt: at})
		b.Attributions = append(b.Attributions, normalize.Attribution{OrganizationID: organization, AttributionID: id,
			RunID: id, AgentID: id, UserIdentifier: ada, ActivityType: "interacted", RunInitiationType: "human",
			Source: "web", OccurredAt: at})
	}
	return b
}

func (b *bed) store(batch *write.Batch) {
	b.Helper()
	b.must(b.writer(b.conns).Write(b.Context(), batch))
}

// rows is all that a cell has of an organization, by table, as text.
func (b *bed) rows(cell string, organization schema.OrganizationID) map[string]string {
	b.Helper()
	found := map[string]string{}
	for table, columns := range map[string]string{
		"agents":              "agent_id, latest",
		"runs":                "created_at, run_id, first_stored_at, state, agent, initiator, record",
		"attributions":        "occurred_at, attribution_id, run_id, user_identifier, first_stored_at, inverted_timestamp",
		"conflicting_records": "kind, id, clock, superseded",
		"api_keys":            "key_id, name, scopes, secret_hash, revoked_at, expires_at",
		"usage_log":           "at, key_id, model, took_us",
		"audit_log":           "at, action_id, outcome, action",
	} {
		var text string
		final := " FINAL"
		if table == "usage_log" || table == "audit_log" {
			final = ""
		}
		b.must(b.conns[cell].QueryRow(b.Context(), "SELECT toString(arraySort(groupArray(toString(tuple("+columns+
			"))))) FROM "+table+final+" WHERE organization_id = $1", string(organization)).Scan(&text))
		if found[table] = text; text == "[]" {
			delete(found, table)
		}
	}
	return found
}

// allIn fails unless one cell has so many runs of acme, and the others have none.
func (b *bed) allIn(cell string, n uint64) {
	b.Helper()
	for name := range b.conns {
		want := uint64(0)
		if name == cell {
			want = n
		}
		if found := b.count(name, b.acme); found != want {
			b.Errorf("%d records in %s, want %d", found, name, want)
		}
	}
}

// count is how many records of runs a cell has of an organization.
func (b *bed) count(cell string, organization schema.OrganizationID) (n uint64) {
	b.Helper()
	b.must(b.conns[cell].QueryRow(context.WithoutCancel(b.Context()),
		"SELECT count() FROM runs FINAL WHERE organization_id = $1", string(organization)).Scan(&n))
	return n
}
