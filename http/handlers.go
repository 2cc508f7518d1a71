package httpapi

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/google/uuid"

	"github.com/runlens/runlens/http/auth"
	"github.com/runlens/runlens/http/conns"
	"github.com/runlens/runlens/http/limit"
	"github.com/runlens/runlens/olap"
	"github.com/runlens/runlens/olap/cost"
	"github.com/runlens/runlens/olap/failure"
	"github.com/runlens/runlens/olap/trace"
	"github.com/runlens/runlens/olap/usage"
)

// getCatalog answers spec 4.1. A caller that names the catalog it has gets 304 while it is the current one. Caches may
// keep it for the caller, but must ask each time, so that every answer is authorized.
func (s *Server) getCatalog(c *fiber.Ctx) error {
	ctx, end := s.work(c)
	defer end()
	if err := s.authorize(ctx, c, s.Rates, auth.ScopeAnalyticsRead); err != nil {
		return s.failed(ctx, c, err)
	}
	c.Set(fiber.HeaderCacheControl, "private, no-cache")
	if unchanged(c, s.catalogTag) {
		return nil
	}
	return send(c, fiber.MIMEApplicationJSON, s.catalog)
}

// weakTag names content in every content coding.
func weakTag(content []byte) string { return fmt.Sprintf(`W/"%x"`, sha256.Sum256(content)) }

// unchanged sets the ETag of what is asked for, and answers 304 where the caller has it.
func unchanged(c *fiber.Ctx, tag string) bool {
	c.Set(fiber.HeaderETag, tag)
	c.Vary(fiber.HeaderAcceptEncoding)
	if c.Get(fiber.HeaderIfNoneMatch) == "" || !c.Fresh() {
		return false
	}
	c.Status(fiber.StatusNotModified)
	return true
}

// runQuery answers spec 4.2. The order of checks is that of spec 5.2 and contract 4.18: what can be
// said of the body alone, then the credential, its rate and its scope, then the query's grammar,
// then concurrency.
func (s *Server) runQuery(c *fiber.Ctx) error {
	end := s.Metrics.stage(stageBody)
	body, err := s.readBody(c)
	defer body.release()
	if err != nil {
		return err
	}
	if err := s.checkSyntax(body.bytes); err != nil {
		return err
	}
	end()
	ctx, endWork := s.work(c)
	defer endWork()
	return s.failed(ctx, c, s.answerQuery(ctx, c, body))
}

// answerQuery answers a query whose body has been read, after all checks but those of the body.
func (s *Server) answerQuery(ctx context.Context, c *fiber.Ctx, body *body) error {
	end := s.Metrics.stage(stageAuthorize)
	if err := s.authorize(ctx, c, s.Rates, auth.ScopeAnalyticsRead); err != nil {
		return err
	}
	end()
	end = s.Metrics.stage(stageParse)
	q, err := s.parse(body.bytes)
	if err != nil {
		return err
	}
	end()
	body.release() // the query may run for long
	x := exchangeOf(c)
	x.shape = usage.ShapeOf(q)
	organization := x.principal.Organization()
	release, wait := s.concurrencyOf(organization).Acquire(string(organization), time.Now())
	if release == nil {
		return limited(limitConcurrency, messageTooManyConcurrent, wait)
	}
	defer func() { release(time.Now()) }()
	x.queryID = uuid.New()
	end = s.Metrics.stage(stageEngine)
	ctx, x.cost = cost.Measure(ctx)
	result, err := s.Engine.Run(ctx, olap.Request{
		Access: x.principal.Access, Query: q,
		QueryID: x.queryID, RequestID: x.requestID, KeyID: x.principal.KeyID,
	})
	end()
	if err != nil {
		return err
	}
	defer s.Metrics.stage(stageEncode)()
	x.execution, x.strategy, x.rows = result.Execution(), result.Strategy(), result.RowCount()
	return sendResult(c, result)
}

// authorize checks the credential, its rate and its scope, in this order (spec 5.2).
func (s *Server) authorize(ctx context.Context, c *fiber.Ctx, rates limit.Rates, scope string) error {
	if err := s.authenticate(ctx, c); err != nil {
		return err
	}
	principal := exchangeOf(c).principal
	conns.Authenticated(c.Context().Conn(), true)
	admitted, state := rates.Take(principal.KeyID, time.Now())
	setRateHeaders(c, state)
	if !admitted {
		return limited(limitRate, messageTooMany, state.Reset)
	}
	if !principal.May(scope) {
		return refuse(codeInsufficientScope)
	}
	return nil
}

// authenticate finds who sends the request.
func (s *Server) authenticate(ctx context.Context, c *fiber.Ctx) error {
	credential, err := auth.ParseKey(bearer(c))
	if err != nil {
		return refuse(codeUnauthorized)
	}
	verifying, span := trace.Start(ctx, "authentication")
	principal, err := s.Verifier.Verify(verifying, credential, s.callerAddress(c))
	var exhausted *auth.LimitedError
	switch {
	case errors.Is(err, auth.ErrUnauthorized):
		return refuse(codeUnauthorized)
	case errors.As(err, &exhausted):
		return limited(limitVerification, messageTooMany, exhausted.RetryAfter)
	case err != nil:
		return failure.Of("verify the key", err)
	}
	span.End() // not of strangers
	exchangeOf(c).principal = principal
	return nil
}

// bearer is the credential of the only Authorization header, or empty.
func bearer(c *fiber.Ctx) string {
	headers := c.Request().Header.PeekAll(fiber.HeaderAuthorization)
	if len(headers) != 1 {
		return ""
	}
	scheme, credential, _ := strings.Cut(strings.Trim(string(headers[0]), whiteSpace), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimLeft(credential, " ")
}

// setRateHeaders sends the key's rate in the fields of the IETF draft "RateLimit header fields for HTTP".
func setRateHeaders(c *fiber.Ctx, state limit.State) {
	seconds := strconv.Itoa(int(RateWindow.Seconds()))
	c.Set("RateLimit-Policy", `"per-key";q=`+strconv.Itoa(state.Limit)+`;w=`+seconds)
	c.Set("RateLimit", `"per-key";r=`+strconv.Itoa(state.Remaining)+`;t=`+strconv.Itoa(retryAfterSeconds(state.Reset)))
}
