package settle

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/moment"
	"github.com/runlens/runlens/schema"
)

const (
	holdPoll = 50 * time.Millisecond
	// signOfLife is the pause between two signs of life of a hold; well below abandoned.
	signOfLife      = 20 * time.Second
	releasePatience = 10 * time.Second
)

// grace is the pause between taking a hold and changing what is settled; shorter only in tests.
var grace = 2 * moment.SettledFor

// Hold runs a change that takes records out of the store, or otherwise alters what is settled, while nobody
// settles and every query reads the records themselves. The change has to leave the settled tables as
// if the records had never been there. When it fails, the settled tables stay out of use until a Settler
// builds them anew.
func Hold(ctx context.Context, conn driver.Conn, change func(context.Context) error) error {
	h, err := take(ctx, conn, false)
	if err != nil {
		return err
	}
	h.grace = grace
	return h.run(ctx, h.until, change)
}

// Rebuild empties the settled tables, also under a hold whose holder died, so that they are built anew.
func Rebuild(ctx context.Context, conn driver.Conn) error {
	h, err := take(ctx, conn, true)
	if err != nil {
		return err
	}
	h.grace = grace
	return h.run(ctx, time.UnixMilli(0), func(ctx context.Context) error {
		// What a holder that died began may still go on in ClickHouse.
		if err := wait(ctx, conn, "SELECT count() FROM system.mutations WHERE database = currentDatabase() AND NOT is_done"); err != nil {
			return err
		}
		for _, table := range schema.Derived() {
			if err := conn.Exec(ctx, "TRUNCATE TABLE "+table); err != nil {
				return fmt.Errorf("settle: empty %s: %w", table, err)
			}
		}
		return nil
	})
}

// A holding is a hold that is ours.
type holding struct {
	conn   driver.Conn
	number uint64
	holder int64
	until  time.Time // how far records were settled
	grace  time.Duration
}

// take waits for its turn. Of several that want the same number, the first insert with its token gets it.
func take(ctx context.Context, conn driver.Conn, over bool) (*holding, error) {
	h := &holding{conn: conn, holder: randomHolder()}
	for {
		state, err := moment.ReadSettlement(ctx, conn)
		if err != nil {
			return nil, err
		}
		if !state.Held || over && state.Now.Sub(state.HeldAt) > abandoned {
			h.number, h.until = state.Number+1, state.Until
			if err := write(ctx, conn, hold, h.number, h.holder, fmt.Sprintf("hold %d", h.number)); err != nil {
				return nil, err
			}
			if state, err = moment.ReadSettlement(ctx, conn); err != nil {
				return nil, err
			}
			if state.Held && state.Number == h.number && state.Holder == h.holder {
				return h, wait(ctx, conn, "SELECT count() FROM system.processes WHERE startsWith(query_id, '"+moment.SettleQueryPrefix+"')")
			}
		}
		if err := moment.Pause(ctx, holdPoll); err != nil {
			return nil, err
		}
	}
}

// run changes and releases: from then on the tables are settled up to until.
func (h *holding) run(ctx context.Context, until time.Time, change func(context.Context) error) error {
	alive, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for moment.Pause(alive, signOfLife) == nil {
			write(alive, h.conn, hold, h.number, h.holder, rand.Text()) // one that is lost is made up for by the next
		}
	}()
	err := moment.Pause(ctx, h.grace) // for queries that read before that nobody holds the tables
	if err == nil {
		err = change(ctx)
	}
	stop()
	<-ended
	if err != nil {
		return err
	}
	// Releasing is not given up with the rest.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releasePatience)
	defer cancel()
	return mark(ctx, h.conn, done, h.number+1, until)
}

// wait polls until a count is zero.
func wait(ctx context.Context, conn driver.Conn, count string) error {
	for {
		var n uint64
		if err := conn.QueryRow(ctx, count).Scan(&n); err != nil {
			return fmt.Errorf("settle: wait: %w", err)
		}
		if n == 0 {
			return nil
		}
		if err := moment.Pause(ctx, holdPoll); err != nil {
			return err
		}
	}
}

func randomHolder() int64 {
	var b [8]byte
	rand.Read(b[:])
	return int64(binary.LittleEndian.Uint64(b[:]) >> 1)
}
