package worker

import (
	"time"

	"github.com/runlens/runlens/ingest/source/postgres"
)

// A horizon knows from where the next pass has to read. A row that a transaction changes has a time at or
// after the transaction's begin, but is seen only when it commits:
//
//  1. Before each pass the worker reads what is in progress at the source.
//  2. A transaction that was in progress at one pass and is not at the next one ended between them; that
//     pass begins where the transaction began.
//  3. A transaction that was not in progress at the last pass and has not been seen began after that pass was
//     read; so the pass begins there at the latest.
//
// A transaction whose begin is unknown was either in progress at the last pass, under another name, or
// began after it: it began at or after the instant that was certain then.
type horizon struct {
	floor time.Time // what was certain before the first pass
	now   time.Time // of the last Activity
	open  map[string]span
}

type span struct {
	since time.Time // the begin, or a bound below it
	known bool      // the source showed it
}

// advance takes note of what is in progress and returns from where the pass has to read that begins now.
func (h *horizon) advance(a postgres.Activity) (from time.Time) {
	floor := h.certain()
	if from = h.now; h.open == nil {
		from = floor
	}
	open := make(map[string]span, len(a.Open))
	for _, t := range a.Open {
		s := span{t.Since, true}
		if t.Since.IsZero() {
			var again bool
			if s, again = h.open[t.Name]; !again {
				s = span{floor, false}
			}
		}
		open[t.Name] = s
	}
	for name, s := range h.open {
		if _, still := open[name]; !still && s.since.Before(from) {
			from = s.since
		}
	}
	h.now, h.open = a.Now, open
	return from
}

// certain is the instant before which no row will be seen for the first time, once the pass has ended that
// was last advanced for. It is zero when nothing is certain.
func (h *horizon) certain() time.Time {
	if h.open == nil {
		return h.floor
	}
	certain, _ := h.oldest(true)
	return certain
}

// until is certain without regard to transactions whose begin is unknown.
func (h *horizon) until() time.Time {
	until, _ := h.oldest(false)
	return until
}

// oldest returns the begin of the oldest transaction, and its name, or now.
func (h *horizon) oldest(unknown bool) (since time.Time, name string) {
	since = h.now
	for n, s := range h.open {
		if (unknown || s.known) && (s.since.Before(since) || name == "" && s.since.Equal(since)) {
			since, name = s.since, n
		}
	}
	return since, name
}

// blind reports whether there are transactions whose begin is unknown.
func (h *horizon) blind() bool {
	for _, s := range h.open {
		if !s.known {
			return true
		}
	}
	return false
}
