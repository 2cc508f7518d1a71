package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/runlens/runlens/olap/doctor/finding"
)

// By how much the source's clock may differ from ours, as ClickHouse's may.
const (
	clockWarning = time.Second
	clockProblem = time.Minute
)

// examineClock compares the source's clock with ours. A worker loses no row where they differ, but the times that the
// source gives to records are then not those of anybody else.
func (d *Database) examineClock(ctx context.Context) (finding.Finding, error) {
	f := finding.Finding{Check: "source clock", Result: finding.OK}
	var now time.Time
	before := time.Now()
	if err := d.pool.QueryRow(ctx, "SELECT statement_timestamp()").Scan(&now); err != nil {
		return f, err
	}
	after := time.Now()
	by, direction := now.Sub(after), "ahead of"
	if now.Before(before) {
		by, direction = before.Sub(now), "behind"
	}
	if by < clockWarning {
		f.Says = fmt.Sprintf("the source's clock and ours are the same to %v",
			max(by, after.Sub(before)).Round(time.Millisecond))
		return f, nil
	}
	if f.Result = finding.Warning; by >= clockProblem {
		f.Result = finding.Problem
	}
	f.Says = fmt.Sprintf("the source's clock is %v %s ours, so that the times which it gives to records, and "+
		"certain_until, are not our time; time zones do not matter", by.Round(time.Millisecond), direction)
	f.Do = "synchronize the clocks of both hosts (chronyc tracking, timedatectl)"
	return f, nil
}
