package httpapi

import (
	"errors"
	"math"
	"net"
	"strconv"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/runlens/runlens/olap/query"
)

// The codes of an error answer besides those of package query (spec section 7, contract 4.14).
const (
	codeUnauthorized      = "unauthorized"
	codeInsufficientScope = "insufficient_scope"
	codeRateLimited       = "rate_limited"
	codeInternalError     = "internal_error"
	codeNotFound          = "not_found"
	codeMethodNotAllowed  = "method_not_allowed"

	// Of pushed records.
	codeInvalidBody   = "invalid_body"
	codeBodyTooLarge  = "body_too_large"
	codeNoValidRecord = "no_valid_record"

	// codeClientClosed is of requests whose client went away. It is for logs and metrics: nothing is answered.
	codeClientClosed = "client_closed_request"
)

// The limits of rate_limited, in the header x-runlens-reason, in metrics and logs. Clients don't repeat limitCost.
const (
	limitRate         = "rate"
	limitVerification = "verification"
	limitConcurrency  = "concurrency"
	limitBodies       = "bodies"
	limitEngine       = "engine"
	limitCost         = "query_too_expensive"
	limitDocs         = "documentation"
	limitRecords      = "records"
	limitMoving       = "moving"
)

// headerReason says of rate_limited which limit was reached, and of restricted_key where the query asks for too much:
// with these, the envelope has no param (contract 4.18).
const headerReason = "x-runlens-reason"

// The wordings of rate_limited.
const (
	messageTooExpensive = "Too expensive query, do not retry: it takes more time or memory than a query may. " +
		"Narrow the range, filter, or select fewer dimensions and metrics."
	messageTooMany           = "Too many requests, retry later."
	messageTooManyConcurrent = "Too many concurrent requests, retry later."
	messageMoving            = "Too early: the organization is being moved, retry later."
)

// answers gives every code its status and fixed message. rate_limited has its message from the limit.
var answers = map[string]struct {
	status  int
	message string
}{
	string(query.InvalidQuery):  {400, "Invalid analytics query."},
	string(query.UnknownMember): {400, "Unknown analytics member."},
	string(query.RangeTooLarge): {400, "Analytics date range is too large."},
	string(query.InvalidCursor): {400, "Invalid analytics cursor."},
	string(query.RestrictedKey): {403, "API key does not permit this query"},
	codeUnauthorized:            {401, "Invalid API key"},
	codeInsufficientScope:       {403, "API key does not have the required scope"},
	codeNotFound:                {404, "Not found"},
	codeMethodNotAllowed:        {405, "Method not allowed"},
	codeInvalidBody:             {400, "Invalid body of records."},
	codeBodyTooLarge:            {413, "The body of records is too large."},
	codeNoValidRecord:           {422, "No line is a valid record."},
	codeRateLimited:             {429, messageTooMany},
	codeClientClosed:            {499, ""},
	codeInternalError:           {500, "An internal error occurred"},
}

// A refusal is an error answer. Its cause goes into the log and never leaves the process.
type refusal struct {
	code       string
	message    string        // empty for the code's own
	param      string        // in the envelope with status 400, in headerReason with restricted_key
	retryAfter time.Duration // of rate_limited
	limit      string        // of rate_limited: which one
	pushed     *pushed       // of no_valid_record
	cause      error
}

func (r *refusal) Error() string {
	if r.cause == nil {
		return r.code
	}
	return r.code + ": " + r.cause.Error()
}

func refuse(code string) error { return &refusal{code: code} }

func limited(which, message string, after time.Duration) error {
	return &refusal{code: codeRateLimited, message: message, retryAfter: after, limit: which}
}

// refusalOf turns any error into the answer it deserves.
func refusalOf(err error) *refusal {
	var r *refusal
	var grammar *query.Error
	var routing *fiber.Error
	switch {
	case errors.As(err, &r):
		return r
	case errors.As(err, &grammar):
		return &refusal{code: string(grammar.Code), param: grammar.Param, cause: err}
	case errors.As(err, &routing):
		switch {
		case routing.Code == fiber.StatusNotFound:
			return &refusal{code: codeNotFound}
		case routing.Code == fiber.StatusMethodNotAllowed:
			return &refusal{code: codeMethodNotAllowed}
		case routing.Code < fiber.StatusInternalServerError, routing.Code == fiber.StatusBadGateway:
			// Headers that cannot be read, a body that is cut off, a connection that ended: the request is malformed.
			return &refusal{code: string(query.InvalidQuery), cause: err}
		}
	}
	return &refusal{code: codeInternalError, cause: err}
}

// send writes the envelope of spec section 7. To a client that went away it writes nothing, and ends the connection.
func (r *refusal) send(c *fiber.Ctx, requestID string) error {
	answer := answers[r.code]
	message := r.message
	if message == "" {
		message = answer.message
	}
	param := r.param
	switch r.code {
	case codeClientClosed:
		c.Context().HijackSetNoResponse(true)
		c.Context().Hijack(func(net.Conn) {})
		c.Status(answer.status)
		return nil
	case codeRateLimited:
		c.Set(headerReason, r.limit)
		c.Set(fiber.HeaderRetryAfter, strconv.Itoa(retryAfterSeconds(r.retryAfter)))
	case string(query.RestrictedKey):
		c.Set(headerReason, param)
		param = ""
	case codeUnauthorized:
		c.Set(fiber.HeaderWWWAuthenticate, "Bearer")
	}
	c.Set(fiber.HeaderLink, "<"+docsPath+"/errors#"+r.code+`>; rel="help"`)
	type body struct {
		Code      string `json:"code"`
		Message   string `json:"message"`
		RequestID string `json:"request_id"`
		Param     string `json:"param,omitempty"`
	}
	return c.Status(answer.status).JSON(struct {
		*pushed
		Error body `json:"error"`
	}{r.pushed, body{r.code, message, requestID, param}})
}

// maxRetryAfter is the longest wait that an answer asks for (contract 4.13).
const maxRetryAfter = time.Minute

// retryAfterSeconds are whole seconds after which the wait is over, at least 1.
func retryAfterSeconds(wait time.Duration) int {
	return int(math.Ceil(min(max(wait, time.Second), maxRetryAfter).Seconds()))
}
