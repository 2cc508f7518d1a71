package olap_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/olaptest"
)

// Of several who ask the same question the first one leaves while it is answered, and another one while it waits: the
// others are answered.
func TestWhoLeavesTakesNothingAway(t *testing.T) {
	t.Parallel()
	conn := olaptest.Hold(olaptest.OpenStore(t).Conn())
	olaptest.Load(t, conn.Conn, olaptest.Records{Runs: []olaptest.Run{runOn(1, 5, "RUNNING")}})
	engine := olap.NewEngine(conn, []byte("secret"))
	reached, left := make(chan struct{}), make(chan struct{})
	conn.Before(1, func() { close(reached); <-left })
	gone := errors.New("gone")
	ended := func(err error) bool { return errors.Is(err, context.Canceled) || errors.Is(err, gone) }
	ask := func() (leave context.CancelCauseFunc, answered chan error) {
		ctx, leave := context.WithCancelCause(context.Background())
		answered = make(chan error, 1)
		go func() {
			request, err := request(acme, totals.Body())
			if err != nil {
				t.Error(err)
			}
			result, err := engine.Run(ctx, request)
			if err == nil && !strings.Contains(string(result.AppendJSON(nil)), `"rows":[[1]]`) {
				t.Errorf("answered %s", result.AppendJSON(nil))
			}
			answered <- err
		}()
		return leave, answered
	}
	leaveFirst, first := ask()
	<-reached
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
	close(left)
	if err := <-first; !ended(err) {
		t.Errorf("the first, who left while his question was answered: %v", err)
	}
	for _, answered := range []chan error{third, fourth} {
		if err := <-answered; err != nil {
			t.Errorf("one who waited: %v", err)
		}
	}
}
