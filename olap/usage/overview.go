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

// ReadOverview sums up the hour before now, of all the stores of a deployment.
func ReadOverview(ctx context.Context, now time.Time, conns ...driver.Conn) (o Overview, err error) {
	o.Since = now.Add(-overviewSpan)
	if o.Keys, err = Summarize(ctx, Selection{By: ByKey, Since: o.Since, Limit: overviewRows}, conns...); err != nil {
		return o, err
	}
	o.Slowest, err = Summarize(ctx,
		Selection{By: ByQuestion, Since: o.Since, Slowest: true, Limit: overviewRows}, conns...)
	return o, err
}
