// Package olaptest is what the tests of the query engine have in common: records, a loader that writes them straight
// into the tables, and a naive evaluator of queries written from the spec alone.
package olaptest

import (
	"context"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/runlens/runlens/schema"
)

// An Agent is one version of an agent's record (contract 3).
type Agent struct {
	Organization string     `json:"organization_id"`
	ID           uuid.UUID  `json:"agent_id"`
	Name         string     `json:"name"`
	Slug         *string    `json:"slug"`
	DeletedAt    *time.Time `json:"deleted_at"`
	UpdatedAt    time.Time  `json:"updated_at"`
}

// A Run is one version of a run's record (contract 3).
type Run struct {
	Organization string     `json:"organization_id"`
	ID           uuid.UUID  `json:"run_id"`
	CreatedAt    time.Time  `json:"created_at"`
	AgentID      uuid.UUID  `json:"agent_id"`
	Kind         string     `json:"kind"`
	Parent       *uuid.UUID `json:"parent_run_id"`
	Status       string     `json:"status"`
	Identifier   *string    `json:"initiator_identifier"`
	Name         *string    `json:"initiator_name"`
	Type         *string    `json:"initiator_type"`
	UpdatedAt    time.Time  `json:"updated_at"`
}

// An Attribution is an attribution record (contract 3).
type Attribution struct {
	Organization   string    `json:"organization_id"`
	ID             uuid.UUID `json:"attribution_id"`
	RunID          uuid.UUID `json:"run_id"`
	AgentID        uuid.UUID `json:"agent_id"`
	Identifier     string    `json:"user_identifier"`
	Name           *string   `json:"user_name"`
	Activity       string    `json:"activity_type"`
	InitiationType string    `json:"run_initiation_type"`
	Source         string    `json:"source"`
	OccurredAt     time.Time `json:"occurred_at"`
}

// By is an attribution record of somebody who interacted with the run when it was created. It has the run's id.
func (r Run) By(person string) Attribution {
	return Attribution{Organization: r.Organization, ID: r.ID, RunID: r.ID, AgentID: r.AgentID, Identifier: person,
		Activity: "interacted", InitiationType: "human", Source: "web", OccurredAt: r.CreatedAt}
}

// Records are rows in the order of their writing.
type Records struct {
	Agents       []Agent
	Runs         []Run
	Attributions []Attribution
}

// Anyone says of a store that it is there for whatever organization.
func Anyone(context.Context) (func(schema.OrganizationID) bool, error) {
	return func(schema.OrganizationID) bool { return true }, nil
}

// Load writes records, one insert per kind.
func Load(t Failer, conn driver.Conn, records Records) {
	t.Helper()
	load(t, conn, schema.TableAgents, schema.AgentColumns, records.Agents, func(a Agent) []any {
		return []any{a.Organization, a.ID, a.Name, a.Slug, a.DeletedAt, a.UpdatedAt}
	})
	load(t, conn, schema.TableRuns, schema.RunColumns, records.Runs, func(r Run) []any {
		return []any{r.Organization, r.ID, r.CreatedAt, r.AgentID, r.Kind, r.Parent, r.Status, r.Identifier, r.Name, r.Type,
			r.UpdatedAt}
	})
	load(t, conn, schema.TableAttributions, schema.AttributionColumns, records.Attributions, func(a Attribution) []any {
		return []any{a.Organization, a.ID, a.RunID, a.AgentID, a.Identifier, a.Name, a.Activity, a.InitiationType, a.Source,
			a.OccurredAt}
	})
}

// LoadHeld is Load, whose rows are stamped, and of which ClickHouse shows none until do has returned: the inserts are
// in flight.
func LoadHeld(t Failer, conn driver.Conn, records Records, do func()) {
	t.Helper()
	Load(t, inFlight{conn, do}, records)
}

type inFlight struct {
	driver.Conn
	do func()
}

func (c inFlight) PrepareBatch(ctx context.Context, query string, opts ...driver.PrepareBatchOption) (
	driver.Batch, error,
) {
	batch, err := c.Conn.PrepareBatch(ctx, query, opts...)
	return heldBatch{batch, c.do}, err
}

type heldBatch struct {
	driver.Batch
	do func()
}

func (b heldBatch) Send() error {
	if err := b.Flush(); err != nil {
		return err
	}
	b.do()
	return b.Batch.Send()
}

// A Failer is a *testing.T or a *rapid.T.
type Failer interface {
	Helper()
	Fatal(args ...any)
}

func load[R any](t Failer, conn driver.Conn, table string, columns []string, records []R, values func(R) []any) {
	t.Helper()
	if len(records) == 0 {
		return
	}
	names := columns[0]
	for _, c := range columns[1:] {
		names += ", " + c
	}
	// As package write stores them: versions of one insert are not collapsed before they are stored.
	ctx := clickhouse.Context(context.Background(), clickhouse.WithSettings(clickhouse.Settings{
		"max_partitions_per_insert_block": 0, "optimize_on_insert": 0,
	}))
	batch, err := conn.PrepareBatch(ctx, "INSERT INTO "+table+" ("+names+")")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if err := batch.Append(values(r)...); err != nil {
			t.Fatal(err)
		}
	}
	if err := batch.Send(); err != nil {
		t.Fatal(err)
	}
}
