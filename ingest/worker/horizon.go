package worker

import (
	"strings"
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
// began after it: it began at or after the instant that was certain then. A prepared one had the name of a session
// that has no transaction of that name any more. The begin of the oldest such session bounds it, and other prepared
// ones do not: where some are always in progress, each would have the bound of the one before, for ever.
type horizon struct {
	floor time.Time // what was certain before the first pass
	now   time.Time // of the last Activity
	open  map[string]span
}

type span struct {
	since time.Time // the begin, or a bound below it and below all times that it writes
	known bool      // the source showed it
}

// advance takes note of what is in progress and returns from where the pass has to read that begins now. All that has
// changed since the last Activity, or since the floor, has a time at or after since, which is before it only where the
// source's clock was set back. Then a transaction in progress may write times before its begin, too.
func (h *horizon) advance(a postgres.Activity, since time.Time) (from time.Time) {
	if from = h.now; h.open == nil {
		from = h.floor
	}
	setBack := since.Before(from)
	open := make(map[string]span, len(a.Open))
	for _, t := range a.Open {
		s, again := h.open[t.Name]
		if !again && t.Since.IsZero() {
			s = span{h.bound(a, t.Name), false}
		} else if !again {
			s = span{t.Since, true}
		}
		if setBack {
			s.since = earlier(s.since, since)
		}
		open[t.Name] = s
	}
	for name, s := range h.open {
		if _, still := open[name]; !still && s.since.Before(from) {
			from = s.since
		}
	}
	h.now, h.open = a.Now, open
	return earlier(from, since)
}

// bound is an instant at or before the begin of a transaction that was not in progress under its name at the last pass.
func (h *horizon) bound(a postgres.Activity, name string) time.Time {
	if h.open == nil || !isPrepared(name) {
		return h.certain()
	}
	still := make(map[string]bool, len(a.Open))
	for _, t := range a.Open {
		still[t.Name] = !t.Ended
	}
	since := h.now
	for n, s := range h.open {
		if !isPrepared(n) && (!s.known || !still[n]) && s.since.Before(since) {
			since = s.since
		}
	}
	return since
}

func isPrepared(name string) bool { return strings.HasPrefix(name, postgres.Prepared) }

// certain is the instant before which no row will be seen for the first time, once the pass has ended that
// was last advanced for. It is zero when nothing is certain.
func (h *horizon) certain() time.Time {
	if h.open == nil {
		return h.floor
	}
	certain, _ := h.oldest(everything)
	return certain
}

// Which of the transactions in progress count.
func everything(string, span) bool      { return true }
func shown(_ string, s span) bool       { return s.known }
func separate(name string, s span) bool { return s.known || isPrepared(name) } // each can be seen to end

// oldest returns the begin of the oldest transaction that counts, and its name, or now.
func (h *horizon) oldest(counts func(string, span) bool) (since time.Time, name string) {
	since = h.now
	for n, s := range h.open {
		if counts(n, s) && (s.since.Before(since) || name == "" && s.since.Equal(since)) {
			since, name = s.since, n
		}
	}
	return since, name
}

// until is certain without regard to transactions whose begin is unknown.
func (h *horizon) until() time.Time {
	until, _ := h.oldest(shown)
	return until
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

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
