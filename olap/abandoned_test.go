package olap_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/olap/query"
	"github.com/runlens/runlens/schema"
)

// A heldConn holds the first statement that reads runs until its caller has gone.
type heldConn struct {
	driver.Conn
	once sync.Once
	held chan struct{} // closed when it is
}

func (c *heldConn) Query(ctx context.Context, sql string, args ...any) (driver.Rows, error) {
	if strings.Contains(sql, "FROM runs") {
		c.once.Do(func() {
			close(c.held)
			<-ctx.Done()
		})
	}
	return c.Conn.Query(ctx, sql, args...)
}

// Of several who ask the same question the first one leaves while it is answered, and another one while it waits: the
// others are answered.
func TestWhoLeavesTakesNothingAway(t *testing.T) {
	t.Parallel()
	conn := &heldConn{Conn: olaptest.OpenStore(t).Conn(), held: make(chan struct{})}
	olaptest.Load(t, conn.Conn, olaptest.Records{Runs: []olaptest.Run{runOn(1, 5, "RUNNING")}})
	engine := olap.NewEngine(conn, []byte("secret"))
	body, err := json.Marshal(olaptest.Query{Model: "agent_runs", Metrics: []string{"run_count"}, Range: january,
		Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	question, err := query.Parse(body)
	if err != nil {
		t.Fatal(err)
	}
	gone := errors.New("gone")
	ended := func(err error) bool { return errors.Is(err, context.Canceled) || errors.Is(err, gone) }
	ask := func() (leave context.CancelCauseFunc, answered chan error) {
		ctx, leave := context.WithCancelCause(context.Background())
		answered = make(chan error, 1)
		go func() {
			result, err := engine.Run(ctx, olap.Request{
				Access: schema.WholeOrganization("acme"), Query: question, QueryID: uuid.New(),
			})
			if err == nil && decode(t, result).Rows[0][0] != 1.0 {
				t.Errorf("answered %s", result.AppendJSON(nil))
			}
			answered <- err
		}()
		return leave, answered
	}
	leaveFirst, first := ask()
	<-conn.held
	waiting := func(callers int) {
		for engine.Waiting() != callers {
			time.Sleep(time.Millisecond)
		}
	}
	leaveSecond, second := ask()
	waiting(1) // the execution that the others share is that of the second
	_, third := ask()
	_, fourth := ask()
	waiting(3)
	leaveSecond(gone)
	if err := <-second; !ended(err) {
		t.Errorf("the second, who left while he waited: %v", err)
	}
	leaveFirst(gone)
	if err := <-first; !ended(err) {
		t.Errorf("the first, who left while his question was answered: %v", err)
	}
	for _, answered := range []chan error{third, fourth} {
		if err := <-answered; err != nil {
			t.Errorf("one who waited: %v", err)
		}
	}
}
