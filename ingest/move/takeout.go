package move

import (
	"context"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/ingest/purge"
	"github.com/runlens/runlens/olap/cells"
	"github.com/runlens/runlens/schema"
	"github.com/runlens/runlens/schema/sql"
)

// TakeOut takes out of a cell's store what it has of organizations that are not in it: what writers stored there
// during a move, and did not acknowledge. It leaves alone those that are in it, or are being moved.
func TakeOut(ctx context.Context, cell string, conn driver.Conn, organizations ...schema.OrganizationID) error {
	// The fence is that nothing was placed since: rows of the table are only added. Where something was, not all is done.
	newest := sql.Select{
		Columns: []string{"max(revision) AS revision"}, From: ofAll(schema.TablePlacement), Group: []string{"subject"},
	}
	placed := sql.Select{Columns: []string{"sum(revision)"}, From: sql.Query(newest)}
	for last := uint64(0); ; {
		var now uint64
		if err := conn.QueryRow(ctx, placed.String()).Scan(&now); err != nil {
			return fmt.Errorf("read where organizations are: %w", err)
		}
		if now == last { // nothing was placed meanwhile
			return nil
		}
		told, err := cells.Read(ctx, conn)
		if err != nil {
			return err
		}
		var absent []schema.OrganizationID
		for _, organization := range organizations {
			at := told.Place(cells.OrganizationSubject(organization))
			if at.Cell != cell && at.State == cells.Open {
				absent = append(absent, organization)
			}
		}
		if len(absent) == 0 {
			return nil
		}
		p := purge.Moved(sql.In(placed)+fmt.Sprintf(" = %d", now), false, absent...)
		if err := p.Run(ctx, conn, func(purge.Step) {}); err != nil {
			return err
		}
		last = now
	}
}
