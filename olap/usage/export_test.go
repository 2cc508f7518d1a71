package usage

import "time"

// WriteEvery changes how often the log writes.
func (l *Log) WriteEvery(d time.Duration) { l.every = d }
