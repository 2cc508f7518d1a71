package httpapi

import (
	"context"
	"errors"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/runlens/runlens/http/conns"
	"github.com/runlens/runlens/olap/failure"
)

// checkEvery is how often a request checks whether its client is still there. One that ends sooner never does.
const checkEvery = 100 * time.Millisecond

// errClientGone is the cause of the end of a request's work whose client went away.
var errClientGone = errors.New("the client closed its connection")

// work is the context of a request's work: from the end of its body until end is called, at most QueryTimeout, and no
// longer than its client waits for the answer, which fasthttp never reports.
func (s *Server) work(c *fiber.Ctx) (ctx context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(exchangeOf(c).ctx)
	ctx, stop := context.WithTimeout(ctx, s.QueryTimeout)
	connection := c.Context().Conn()
	check := time.AfterFunc(checkEvery, func() {
		ticker := time.NewTicker(checkEvery)
		defer ticker.Stop()
		for !conns.Gone(connection) {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
		cancel(errClientGone)
	})
	return ctx, func() {
		check.Stop()
		stop()
		cancel(nil)
	}
}

// failed is the error of a request whose work failed, by what ended it:
//
//  1. The client went away: there is nobody to answer.
//  2. A statement reached a limit of its own, or was under way for most of the time that there was: the query is too
//     expensive. The same one would fail again.
//  3. The deadline was reached otherwise: the time passed with waiting, which is due to others, or ClickHouse answered
//     nobody. It is not known where the statement waited while ClickHouse ran those of others; so a busy server may be
//     told of as in 2.
func (s *Server) failed(ctx context.Context, c *fiber.Ctx, err error) error {
	var late *failure.LateError
	switch {
	case err == nil:
		return nil
	case errors.Is(context.Cause(ctx), errClientGone):
		return &refusal{code: codeClientClosed, cause: err}
	case errors.Is(err, failure.ErrTooExpensive), errors.As(err, &late) && late.Ran >= s.QueryTimeout/2:
		return &refusal{
			code: codeRateLimited, message: messageTooExpensive, retryAfter: maxRetryAfter, limit: limitCost, cause: err,
		}
	case errors.Is(err, failure.ErrOverloaded), errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil:
		return &refusal{
			code: codeRateLimited, message: messageTooManyConcurrent, limit: limitEngine, cause: err,
			retryAfter: s.concurrencyOf(exchangeOf(c).principal.Organization()).Typical(),
		}
	}
	return err
}
