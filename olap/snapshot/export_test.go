package snapshot

import (
	"context"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// MaxActive is of how many records it is known at most that rows arrive.
const MaxActive = maxActive

// ReadActive reads of which records rows were stored within a while, of at most so many.
func ReadActive(ctx context.Context, conn driver.Conn, within time.Duration, most int) ([]Records, error) {
	return readActive(ctx, conn, within, most)
}

// SetBack makes the last reading one of before the store's clock was set back.
func (b *Boundaries) SetBack(by time.Duration) {
	before := *b.last.Load()
	before.Now, before.Oldest = before.Now.Add(by), before.Oldest.Add(by)
	b.last.Store(&before)
}
