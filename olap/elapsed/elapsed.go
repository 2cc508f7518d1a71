// Package elapsed says how old something is that is believed for a while, also on a machine that slept meanwhile.
package elapsed

import "time"

// Between is for how long what was so at one instant has been believed at a later one, both as time.Now returned them.
// Go measures that by a clock that stands still while the machine sleeps. The other one goes on, but may be set. The
// longer time counts: a clock that was set forward only has things read again.
func Between(from, to time.Time) time.Duration {
	return max(to.Sub(from), to.Round(0).Sub(from.Round(0)))
}

// SameStart reports whether two readings of when ClickHouse was started are of one start. It tells its age in seconds,
// and a machine takes longer than this tolerance to come back after a loss of power.
func SameStart(a, b time.Time) bool { return a.Sub(b).Abs() <= 2*time.Second }
