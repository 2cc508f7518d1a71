package purge

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/ingest/purged"
	"github.com/runlens/runlens/olap/rollup"
	"github.com/runlens/runlens/olap/snapshot"
	"github.com/runlens/runlens/schema"
)

// Run does the steps under a claim of the rollup, one after the other, and calls after after each. It returns when the
// files of what it replaced are deleted too, where ClickHouse does not keep such files for a while, but after Moved. A
// purge that ends early, with an error or with the process, is to be run again; the error is rollup.ErrLost when
// another process took the claim meanwhile.
func (p *Purge) Run(ctx context.Context, conn driver.Conn, after func(Step)) error {
	err := rollup.WithChange(ctx, conn, func(ctx context.Context, change *rollup.Change) error {
		// Targets of processes that died.
		if err := change.Alter(ctx, schema.TablePurgeTargets, deletes, fmt.Sprintf("purge != %d", p.number)); err != nil {
			return err
		}
		now, err := snapshot.Now(ctx, conn)
		if err != nil {
			return err
		}
		if p.person != nil { // on the list before anything is searched for: writers look for it after they have stored
			p.until = now
			if err := purged.Add(ctx, conn, *p.person, p.until); err != nil {
				return err
			}
		}
		return p.aim(ctx, conn, func() error {
			if err := change.Damage(ctx, p.selected(targetOrganization, "key AS organization_id").String()); err != nil {
				return err
			}
			for _, s := range p.Steps {
				if err := p.do(ctx, change, s, now); err != nil {
					return err
				}
				after(s)
			}
			return nil
		})
	})
	if err != nil {
		return fmt.Errorf("purge: %w", err)
	}
	if p.moved {
		return nil
	}
	return p.sweep(ctx, conn)
}

// do does a step of a purge that began at an instant of the store's clock.
func (p *Purge) do(ctx context.Context, change *rollup.Change, s Step, began time.Time) error {
	if s.again != "" {
		stored := fmt.Sprintf("UPDATE last_stored_at = fromUnixTimestamp64Milli(%d, 'UTC')",
			change.Again(began).UnixMilli())
		if err := change.Alter(ctx, s.Table, stored, p.sql(s.again)); err != nil {
			return err
		}
	}
	if s.damage != "" {
		if err := change.LeaveDamaged(ctx, schema.TableAttributions, p.sql(s.damage)); err != nil {
			return err
		}
	}
	return change.Alter(ctx, s.Table, s.change, p.sql(s.where))
}
