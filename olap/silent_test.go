package olap_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/failure"
	"github.com/runlens/runlens/olap/olaptest"
)

// A statement that is under way when time is up took long, and would again. Where ClickHouse answered nobody meanwhile
// nothing is known of that: it may be sent again.
func TestStoreThatStandsStill(t *testing.T) {
	t.Parallel()
	for _, silent := range []bool{false, true} {
		conn := olaptest.Hold(olaptest.OpenStore(t).Conn())
		olaptest.Load(t, conn.Conn, olaptest.Records{Runs: []olaptest.Run{runOn(1, 5, "RUNNING")}})
		engine := olap.NewEngine(conn, []byte("secret"))
		if silent {
			engine.CacheNoSizes() // and any time without a reading is a long one
		}
		engine.FollowOnce(t.Context())
		ask := func(ctx context.Context) error {
			request, err := request(acme, totals.Body())
			if err != nil {
				t.Fatal(err)
			}
			_, err = engine.Run(ctx, request)
			return err
		}
		conn.Restart()
		if err := ask(t.Context()); err != nil {
			t.Fatal(err)
		}
		last := conn.Sent()
		conn.Restart()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		conn.Before(last, func() { <-ctx.Done() })
		err := ask(ctx)
		var late *failure.LateError
		if errors.As(err, &late) == silent || errors.Is(err, failure.ErrOverloaded) != silent {
			t.Errorf("silent: %v: got %v", silent, err)
		}
	}
}
