package finding

import (
	"fmt"
	"time"
)

// By how much a clock may differ from ours.
const (
	ClockWarning = time.Second
	ClockProblem = time.Minute
)

// A Clock is one that is compared with that of this process.
type Clock struct {
	Of               string        // whose it is, as in "ClickHouse"
	So               string        // what follows where it differs
	Warning, Problem time.Duration // from which differences on, inclusive
}

// Judge judges a clock that showed now, to a millisecond, between two instants of ours. What the reading takes is no
// difference. The Finding has no Check yet.
func (c Clock) Judge(now, before, after time.Time) Finding {
	var by time.Duration
	direction := "ahead of"
	switch {
	case now.Before(before.Add(-time.Millisecond)):
		by, direction = before.Sub(now), "behind"
	case now.After(after):
		by = now.Sub(after)
	}
	if by < c.Warning {
		return Finding{Result: OK, Says: fmt.Sprintf("%s's clock and ours are the same to %v; time zones do not matter, all "+
			"instants are UTC", c.Of, max(by, after.Sub(before)).Round(time.Millisecond))}
	}
	result := Warning
	if by >= c.Problem {
		result = Problem
	}
	return Finding{Result: result, Do: "synchronize the clocks of both hosts (chronyc tracking, timedatectl)",
		Says: fmt.Sprintf("%s's clock is %v %s ours, so that %s; time zones do not matter", c.Of,
			by.Round(time.Millisecond), direction, c.So)}
}
