package httpapi

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"runtime/debug"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/google/uuid"
	"go.opentelemetry.io/otel/trace"

	"github.com/runlens/runlens/http/auth"
	"github.com/runlens/runlens/http/conns"
	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/cost"
	"github.com/runlens/runlens/olap/usage"
)

const headerRequestID = "x-request-id"

var requestIDPattern = regexp.MustCompile(`^[A-Za-z0-9._:/=-]{1,64}$`)

// An exchange is what is known of a request while it is answered.
type exchange struct {
	requestID string
	ctx       context.Context // with the span of the request
	span      trace.Span
	unread    bool // neither method nor path could be read
	framing   framing
	bodyEnded bool // the body was read to its end
	began     time.Time
	principal auth.Principal
	queryID   uuid.UUID // zero before a query runs
	execution uuid.UUID // ClickHouse's query_id; zero before it answered
	strategy  olap.Strategy
	rows      int
	shape     usage.Shape // empty before the question is understood
	cost      *cost.Meter // nil before it runs
	pushed    *pushed     // nil unless records were judged
	refusal   *refusal
}

type exchangeKey struct{}

func exchangeOf(c *fiber.Ctx) *exchange { return c.Locals(exchangeKey{}).(*exchange) }

// observe surrounds every request: it gives it an identifier, turns errors and panics into answers,
// and writes one log line.
func (s *Server) observe(c *fiber.Ctx) error {
	x := exchangeOf(c)
	s.begin(c, x)
	if err := protect(c); err != nil {
		x.refusal = refusalOf(err)
		if err := x.refusal.send(c, x.requestID); err != nil {
			return err
		}
	}
	s.finish(c, x)
	return nil
}

// protect runs the handlers and turns a panic into an error.
func protect(c *fiber.Ctx) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	return c.Next()
}

// refuseUnread answers requests that fasthttp could not read. Of a header that it cannot read it keeps nothing, and
// has a GET of / in its place. A connection that ends before its first request has one byte is closed without a word.
// Its client may be about to send, and would take a refusal for its answer; fasthttp itself spares only connections
// that had a request.
func (s *Server) refuseUnread(c *fiber.Ctx, err error) error {
	if conn := c.Context().Conn(); c.Context().ConnRequestNum() == 0 && conns.Silent(conn) {
		_ = conn.Close() // it may be closed already, and Fiber would log that
		return nil
	}
	return s.refuseEarly(c, &exchange{refusal: refusalOf(err), unread: len(c.Request().Header.RawHeaders()) == 0})
}

// refuseEarly answers what never reached a handler: requests that could not be read, and unknown methods.
func (s *Server) refuseEarly(c *fiber.Ctx, x *exchange) error {
	s.begin(c, x)
	closeUnread(c.Context())
	if err := x.refusal.send(c, x.requestID); err != nil {
		return err
	}
	s.finish(c, x)
	return nil
}

// begin takes the caller's identifier, or makes one where it is absent or invalid (spec 5.4).
func (s *Server) begin(c *fiber.Ctx, x *exchange) {
	x.requestID, x.began = fieldOf(c, headerRequestID), time.Now()
	if !requestIDPattern.MatchString(x.requestID) {
		x.requestID = uuid.NewString()
	}
	x.ctx, x.span = s.beginTrace(c)
	c.Set(headerRequestID, x.requestID)
	c.Set(fiber.HeaderCacheControl, "no-store")
}

// finish counts and logs an answer. The log names ids, never a key, a person or the content of a query, and has of
// strangers, and of what is beyond a key's rate, only what refusalLog leaves.
func (s *Server) finish(c *fiber.Ctx, x *exchange) {
	conns.Authenticated(c.Context().Conn(), x.principal.KeyID != "")
	took := time.Since(x.began)
	status := c.Response().StatusCode()
	method, route := s.nameOf(c, x)
	s.Metrics.observe(route, status, took)
	if x.cost != nil {
		s.Metrics.took(x.cost.Cost())
	}
	if s.Usage != nil && route == queryPath && x.principal.KeyID != "" {
		s.Usage(x.used(took))
	}
	if r := x.refusal; r != nil {
		if r.limit != "" {
			s.Metrics.limited.WithLabelValues(r.limit).Inc()
		}
		if !s.refused.take(r, x.principal.KeyID) {
			return // nor is its span ended: they fill no store of traces either
		}
	} else if route == docsPath {
		return // as before
	}
	x.endTrace(method, route, status)
	if x.execution != uuid.Nil {
		s.Metrics.answered(x.strategy)
	}
	if x.pushed != nil {
		s.Metrics.pushed(x.pushed)
	}
	level := slog.LevelInfo
	if x.refusal != nil && x.refusal.code == codeInternalError {
		level = slog.LevelError
	}
	s.Logger.LogAttrs(x.ctx, level, "request", x.attributes(method, route, status, took)...)
}

// attributes are what the log says of an answer.
func (x *exchange) attributes(method, route string, status int, took time.Duration) []slog.Attr {
	attributes := []slog.Attr{
		slog.String("request_id", x.requestID),
		slog.String("method", method),
		slog.String("route", route),
		slog.Int("status", status),
		slog.Float64("duration_ms", float64(took.Microseconds())/1000),
	}
	if x.principal.KeyID != "" {
		attributes = append(attributes, slog.String("organization_id", string(x.principal.Organization())),
			slog.String("key_id", x.principal.KeyID))
	}
	if x.queryID != uuid.Nil {
		attributes = append(attributes, slog.String("query_id", x.queryID.String()), slog.Int("rows", x.rows))
	}
	if x.execution != uuid.Nil {
		attributes = append(attributes, strategyAttribute(x.strategy))
	}
	if p := x.pushed; p != nil {
		attributes = append(attributes, slog.Int("lines", p.Lines), slog.Int("stored", p.Stored))
	}
	if x.execution != x.queryID && x.execution != uuid.Nil {
		attributes = append(attributes, slog.String("execution_id", x.execution.String()))
	}
	if r := x.refusal; r != nil {
		attributes = append(attributes, slog.String("code", r.code))
		if r.limit != "" {
			attributes = append(attributes, slog.String("limit", r.limit))
		}
		if r.cause != nil && (r.limit != "" || r.code == codeInternalError) {
			attributes = append(attributes, slog.String("cause", r.cause.Error()))
		}
	}
	return attributes
}

// used is what the log of usage keeps of a question.
func (x *exchange) used(took time.Duration) usage.Entry {
	e := usage.Entry{
		At: x.began, OrganizationID: x.principal.Organization(), KeyID: x.principal.KeyID,
		Shape: x.shape, ReturnedRows: x.rows, Took: took,
	}
	if x.refusal != nil {
		e.Code, e.LimitHit = x.refusal.code, x.refusal.limit
	}
	if x.cost != nil {
		e.Cost = x.cost.Cost()
	}
	return e
}

// strategyAttribute groups how a query was answered.
func strategyAttribute(strategy olap.Strategy) slog.Attr {
	attributes := []any{slog.String("reads", strategy.Reads)}
	if strategy.Delta != "" {
		attributes = append(attributes, slog.String("delta", strategy.Delta))
	}
	attributes = append(attributes, slog.String("page", strategy.Page))
	if strategy.Reason != "" {
		attributes = append(attributes, slog.String("reason", strategy.Reason))
	}
	if strategy.Refreshing {
		attributes = append(attributes, slog.Bool("refreshing", true))
	}
	if len(strategy.Refuted) > 0 {
		attributes = append(attributes, slog.Any("refuted", strategy.Refuted))
	}
	return slog.Group("strategy", append(attributes, slog.Int("attempt", strategy.Attempt))...)
}
