package main

import (
	"context"
	"fmt"
	"time"

	"github.com/runlens/runlens/ingest/purge"
	"github.com/runlens/runlens/olap/rollup"
	usagelog "github.com/runlens/runlens/olap/usage"
	"github.com/runlens/runlens/schema"
)

// tenantQuestions is how many questions of an organization the usage log has.
const tenantQuestions = 10

// loadUsage fills the usage log.
func (t *tenants) loadUsage(ctx context.Context) error {
	return t.store.Conn().Exec(ctx, fmt.Sprintf("INSERT INTO "+schema.TableUsageLog+
		" (organization_id, at, questions, model, metrics, rows_read, took_us) SELECT "+
		t.organizationSQL(fmt.Sprintf("intDiv(number, %d)", tenantQuestions))+
		", now64(3, 'UTC'), 1, 'runs', ['run_count'], 100, 5000 FROM numbers(%d)", t.count*tenantQuestions))
}

// commands are figures of what operators run: the last one takes organizations out. What takes seconds whatever the
// store holds is left out where there are so few that nothing is learned of growth.
func (t *tenants) commands(b *bench) []tenantFigure {
	conn := t.store.Conn()
	figures := []tenantFigure{
		{"a server starts", false, func(ctx context.Context) error {
			server, err := b.product(t.dir).Serve(ctx, b.folder.Dir, "--admin-listen", "off", "--maintenance-share", "0")
			if err == nil {
				server.Stop()
			}
			return err
		}},
		{"questions of an organization are summed up", false, func(ctx context.Context) error {
			_, err := usagelog.Summarize(ctx, usagelog.Selection{By: usagelog.ByShape, Limit: 20,
				OrganizationID: t.organization(t.count / 2), Since: time.Now().Add(-24 * time.Hour)}, conn)
			return err
		}},
	}
	if b.growthCounts()[0] < 100 {
		return figures
	}
	return append(figures, []tenantFigure{
		{"the rollup is checked, all of it", true, func(ctx context.Context) error {
			_, err := rollup.Check(ctx, conn)
			return err
		}},
		{"an organization is purged: writes every part with its rows again", true, func(ctx context.Context) error {
			organization := t.organization(t.count - 1 - t.purged%(t.count/2))
			t.purged++
			return purge.Organization(organization).Run(ctx, conn, func(purge.Step) {})
		}},
	}...)
}
