package httpapi

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/runlens/runlens/http/auth"
	"github.com/runlens/runlens/http/limit"
	"github.com/runlens/runlens/ingest/push"
)

// recordsPath is where records are pushed. It is no part of the specification.
const recordsPath = "/api/ingest/v1/records"

// A Pusher stores records, as *push.Lane does.
type Pusher interface {
	Store(ctx context.Context, r *push.Records, release func()) error
}

// A PushConfig is what a server that takes records depends on.
type PushConfig struct {
	Pusher Pusher
	Rates  limit.Rates // of keys by their ids, in RateWindow; pushes don't count in those of questions
	// Memory is what bodies take from their first byte to the acknowledgement of their records, by keys.
	Memory *limit.Shares
}

// A pushed is what a body of records is answered with.
type pushed struct {
	Lines    int           `json:"lines"`
	Stored   int           `json:"stored"`
	Rejected int           `json:"rejected"`
	Rejects  []push.Reject `json:"rejects"`
}

// pushRecords stores the records of a body. A body is large, and everybody can send one: so the credential, its rate
// and its scope come first.
func (s *Server) pushRecords(c *fiber.Ctx) error {
	ctx, end := s.work(c)
	err := s.failed(ctx, c, s.authorize(ctx, c, s.Push.Rates, auth.ScopeIngestWrite))
	end()
	if err != nil {
		return err
	}
	x := exchangeOf(c)
	memory := s.Push.Memory.Of(x.principal.KeyID)
	body := &body{budget: memory, full: limited(limitRecords, messageTooMany, time.Second)}
	defer func() { body.release() }()
	switch err := body.receive(c, push.MaxBytes); {
	case errors.Is(err, errBodyTooLarge):
		return &refusal{code: codeBodyTooLarge, cause: err}
	case err != nil:
		return asPush(err)
	}
	coding := fieldOf(c, fiber.HeaderContentEncoding)
	records, err := push.Read(bytes.NewReader(body.bytes), coding, x.principal.Organization())
	switch {
	case errors.Is(err, push.ErrTooLarge):
		return &refusal{code: codeBodyTooLarge, cause: err}
	case err != nil:
		return &refusal{code: codeInvalidBody, cause: err}
	}
	body.release()
	ctx, end = s.work(c)
	defer end()
	// The body may have taken a minute, and the key may have been revoked since.
	if err := s.failed(ctx, c, s.authenticate(ctx, c)); err != nil {
		return err
	}
	if !memory.Take(records.Bytes) {
		return body.full
	}
	if err := s.Push.Pusher.Store(ctx, records, func() { memory.Give(records.Bytes) }); err != nil {
		if errors.Is(err, push.ErrMoving) {
			return limited(limitMoving, messageMoving, time.Second)
		}
		return s.failed(ctx, c, err)
	}
	x.pushed = &pushed{records.Lines, records.Stored(), records.Rejected, records.Rejects}
	if x.pushed.Rejects == nil {
		x.pushed.Rejects = []push.Reject{}
	}
	if records.Lines > 0 && records.Stored() == 0 {
		return &refusal{code: codeNoValidRecord, pushed: x.pushed}
	}
	return c.JSON(x.pushed)
}

// asPush is the error of a body that was not received.
func asPush(err error) error {
	if r := refusalOf(err); r.code == codeRateLimited {
		return r
	}
	return &refusal{code: codeInvalidBody, cause: err}
}
