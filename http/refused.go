package httpapi

import (
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

// refusedPerSecond is how many refusals of a kind are logged one by one in a second, inclusive.
const refusedPerSecond = 10

// A refusalLog keeps strangers, and callers who ignore the limit of their rate, from filling the log: of the requests
// that were refused before anybody was authenticated, or beyond the rate of a key, it counts those beyond
// refusedPerSecond of a kind, and logs the count when the second is over. It is safe for concurrent use.
type refusalLog struct {
	logger *slog.Logger

	mu    sync.Mutex
	kinds map[refusedKind]*refusedSecond
}

// A refusedKind is what refusals have in common. There are no more than the code knows, and one of each key.
type refusedKind struct {
	code, limit string
	keyID       string // empty for strangers
}

type refusedSecond struct {
	began  time.Time
	logged int
	more   int
}

func newRefusalLog(logger *slog.Logger) *refusalLog {
	return &refusalLog{logger: logger, kinds: map[refusedKind]*refusedSecond{}}
}

// take reports whether a refusal of who has a key, empty for a stranger, is to be logged by itself; else it is counted.
func (l *refusalLog) take(r *refusal, keyID string) bool {
	if keyID != "" && r.limit != limitRate { // the rate bounds them
		return true
	}
	kind, now := refusedKind{r.code, r.limit, keyID}, time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	second := l.kinds[kind]
	if second == nil || second.more == 0 && now.Sub(second.began) >= time.Second {
		second = &refusedSecond{began: now}
		l.kinds[kind] = second
	}
	if second.logged < refusedPerSecond {
		second.logged++
		return true
	}
	if second.more++; second.more == 1 {
		time.AfterFunc(second.began.Add(time.Second).Sub(now), func() { l.end(kind) })
	}
	return false
}

// end logs how many refusals of a kind were counted.
func (l *refusalLog) end(kind refusedKind) {
	l.mu.Lock()
	more := 0
	if second := l.kinds[kind]; second != nil {
		more = second.more
		delete(l.kinds, kind)
	}
	l.mu.Unlock()
	if more == 0 { // close has logged them
		return
	}
	attributes := []any{"code", kind.code, "more", more}
	if kind.limit != "" {
		attributes = append(attributes, "limit", kind.limit)
	}
	if kind.keyID != "" {
		l.logger.Info("requests beyond the rate of a key were refused", append(attributes, "key_id", kind.keyID)...)
		return
	}
	l.logger.Info("requests were refused before authentication", attributes...)
}

// close logs all that is counted.
func (l *refusalLog) close() {
	l.mu.Lock()
	kinds := slices.Collect(maps.Keys(l.kinds))
	l.mu.Unlock()
	for _, kind := range kinds {
		l.end(kind)
	}
}
