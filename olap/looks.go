package olap

import (
	"context"
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
type looks struct{ recent[look] }

func (l *looks) look(ctx context.Context, conn driver.Conn, of recordsOf) (look, error) {
	if last, known := l.get(of, lookAge); known {
		return last, nil
	}
	now := look{at: time.Now()}
	var err error
	now.settlement, now.changed, err = moment.ReadChanges(ctx, conn, of.organization, schema.SettledOf(of.source))
	if err == nil && now.changed {
		l.put(of, now, now.at)
	}
	return now, err
}
