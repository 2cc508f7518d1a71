package settle

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/moment"
	"github.com/runlens/runlens/schema"
)

// A kind of mark in the table settlements. Of each kind the greatest number counts, and of one number
// the mark that goes least far.
type kind string

const (
	intent kind = "intent" // a settler is about to settle up to an instant
	done   kind = "done"   // everything up to an instant is settled
	hold   kind = "hold"   // nobody may read or settle
)

// mark writes an intent or what is done.
func mark(ctx context.Context, conn driver.Conn, k kind, number uint64, until time.Time) error {
	return write(ctx, conn, k, number, -until.UnixMilli(), "1")
}

// unclaimed is the condition that nothing of a number or a greater one is done, and that no lease has one.
func unclaimed(number uint64) string {
	return fmt.Sprintf("(SELECT max(tupleElement(latest, 1)) FROM %s WHERE kind IN ('done', 'hold')) < %d",
		schema.TableSettlements, number)
}

// write adds a mark if a condition holds in the store while the statement runs. The token is new each time, so that
// ClickHouse takes no mark for the repeat of another. The name of the statement tells that it changes no records, and
// lets take wait for the ones of others.
func write(ctx context.Context, conn driver.Conn, k kind, number uint64, value int64, condition string) error {
	ctx = clickhouse.Context(ctx, clickhouse.WithQueryID(moment.SettleQueryPrefix+rand.Text()),
		clickhouse.WithSettings(clickhouse.Settings{"async_insert": 0, "insert_deduplication_token": rand.Text()}))
	err := conn.Exec(ctx, "INSERT INTO "+schema.TableSettlements+" (kind, latest)"+
		" SELECT {kind:String}, ({number:UInt64}, {value:Int64}, now64(3, 'UTC')) WHERE "+condition,
		clickhouse.Named("kind", string(k)), clickhouse.Named("number", number), clickhouse.Named("value", value))
	if err != nil {
		return fmt.Errorf("settle: write %s %d: %w", k, number, err)
	}
	return nil
}

// leastIntent is the earliest instant up to which any settler meant to go in the newest step.
func leastIntent(ctx context.Context, conn driver.Conn) (time.Time, error) {
	var earliness int64
	err := conn.QueryRow(ctx, "SELECT tupleElement(newest, 2) FROM (SELECT max(latest) AS newest FROM "+schema.TableSettlements+" WHERE kind = 'intent')").Scan(&earliness)
	if err != nil {
		return time.Time{}, fmt.Errorf("settle: read the intents: %w", err)
	}
	return time.UnixMilli(-earliness).UTC(), nil
}
