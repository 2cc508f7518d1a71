package olap

import (
	"context"
	"sync"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/moment"
	"github.com/runlens/runlens/schema"
)

// lookAge is how long a look at changes is used again: half of what it holds for at least, so that most
// statements end before.
const lookAge = moment.SettledFor / 2

// A look tells how far records were settled, and whether rows of an organization were stored since.
type look struct {
	settlement moment.Settlement
	changed    bool
	at         time.Time // no later than what it tells
}

// A looks remembers the last looks that found changes: more of them can only be more to add, so that such a look is as good
// as a new one. That nothing was stored holds for no longer than a moment.
type looks struct {
	mu    sync.Mutex
	known map[sizeOf]look
}

func (l *looks) look(ctx context.Context, conn driver.Conn, of sizeOf) (look, error) {
	l.mu.Lock()
	last, known := l.known[of]
	l.mu.Unlock()
	if known && time.Since(last.at) < lookAge {
		return last, nil
	}
	now := look{at: time.Now()}
	var err error
	now.settlement, now.changed, err = moment.ReadChanges(ctx, conn, of.organization, schema.SettledOf(of.source))
	if err != nil {
		return now, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known == nil || len(l.known) >= maxSizes {
		l.known = map[sizeOf]look{}
	}
	if delete(l.known, of); now.changed {
		l.known[of] = now
	}
	return now, nil
}
