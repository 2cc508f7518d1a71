package usage

import (
	"context"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

const (
	// overviewSpan is short: an overview is read again and again, also while the store has too much to do.
	overviewSpan = time.Hour
	overviewRows = 10
)

// An Overview is what operators look at first when answers are slow or refused.
type Overview struct {
	Since   time.Time `json:"since"`   // inclusive
	Keys    []Summary `json:"keys"`    // ByKey: up to 10 that ask the most, the most frequent first
	Slowest []Summary `json:"slowest"` // ByQuestion: up to 10 by P95Ms, the slowest first
}

// ReadOverview sums up the hour before now.
func ReadOverview(ctx context.Context, conn driver.Conn, now time.Time) (o Overview, err error) {
	o.Since = now.Add(-overviewSpan)
	if o.Keys, err = Summarize(ctx, conn, Selection{By: ByKey, Since: o.Since, Limit: overviewRows}); err != nil {
		return o, err
	}
	o.Slowest, err = Summarize(ctx, conn,
		Selection{By: ByQuestion, Since: o.Since, Slowest: true, Limit: overviewRows})
	return o, err
}
