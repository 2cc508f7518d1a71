package olap_test

import (
	"context"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/write"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/schema"
)

// pushBatch stores records as a server does that they are pushed to.
func pushBatch(t olaptest.Failer, conn driver.Conn, records olaptest.Records) {
	t.Helper()
	var b write.Batch
	for _, a := range records.Agents {
		agent := normalize.Agent{OrganizationID: schema.OrganizationID(a.Organization), AgentID: a.ID, Name: a.Name,
			Slug: a.Slug, UpdatedAt: a.UpdatedAt.UnixMilli()}
		if a.DeletedAt != nil {
			agent.DeletedAt = new(a.DeletedAt.UnixMilli())
		}
		b.Agents = append(b.Agents, agent)
	}
	for _, r := range records.Runs {
		b.Runs = append(b.Runs, normalize.Run{OrganizationID: schema.OrganizationID(r.Organization), RunID: r.ID,
			AgentID: r.AgentID, RunKind: r.Kind, ParentRunID: r.Parent, Status: r.Status, InitiatorIdentifier: r.Identifier,
			InitiatorName: r.Name, InitiatorType: r.Type, CreatedAt: r.CreatedAt.UnixMilli(),
			UpdatedAt: r.UpdatedAt.UnixMilli()})
	}
	for _, a := range records.Attributions {
		b.Attributions = append(b.Attributions, normalize.Attribution{
			OrganizationID: schema.OrganizationID(a.Organization), AttributionID: a.ID, RunID: a.RunID, AgentID: a.AgentID,
			UserIdentifier: a.Identifier, UserName: a.Name, ActivityType: a.Activity, RunInitiationType: a.InitiationType,
			Source: a.Source, OccurredAt: a.OccurredAt.UnixMilli()})
	}
	b.Once = true
	w := write.NewWriter(conn, write.Retry{Logger: quiet})
	err := w.Write(context.Background(), &b)
	if err == nil && b.Moved.Organizations != nil {
		err = w.Resolve(context.Background(), b.Moved.Since)
	}
	if err != nil {
		t.Fatal(err)
	}
}
