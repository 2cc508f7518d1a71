package client

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// The codes of an Error (spec section 7). A newer server may have others.
const (
	CodeInvalidQuery      = "invalid_query"
	CodeUnknownMember     = "unknown_member"
	CodeRangeTooLarge     = "range_too_large"
	CodeInvalidCursor     = "invalid_cursor"
	CodeUnauthorized      = "unauthorized"
	CodeInsufficientScope = "insufficient_scope"
	CodeRestrictedKey     = "restricted_key"
	CodeRateLimited       = "rate_limited"
	CodeInternalError     = "internal_error"
	CodeInvalidBody       = "invalid_body" // this and those below: of pushes
	CodeBodyTooLarge      = "body_too_large"
	CodeNoValidRecord     = "no_valid_record"
)

// ReasonTooExpensive is the Reason of a query that takes more time or memory than a query may.
const ReasonTooExpensive = "query_too_expensive"

// An Error is an answer of the server that is no result.
type Error struct {
	Status     int           // of HTTP
	Code       string        // empty if what answered is no runlens server, as a proxy's 502
	Message    string        // the server's, fixed for most codes
	Param      string        // the place in the request, or for CodeUnknownMember the member; may be empty
	RequestID  string        // under which the server's log has the cause; may be empty
	RetryAfter time.Duration // what the server asks to wait; 0 if it does not say
	Reason     string        // of CodeRateLimited: which limit; of CodeRestrictedKey: what it forbids; may be empty
}

func (e *Error) Error() string {
	if e.Code == "" {
		return fmt.Sprintf("the server answered %d %s", e.Status, http.StatusText(e.Status))
	}
	place := ""
	if e.Param != "" {
		place = " at " + e.Param
	}
	return fmt.Sprintf("%s%s: %s (request %s)", e.Code, place, e.Message, e.RequestID)
}

// retryable reports whether the same request may succeed later.
func (e *Error) retryable() bool {
	limited := e.Status == http.StatusTooManyRequests && e.Reason != ReasonTooExpensive
	return limited || e.Status >= http.StatusInternalServerError
}

// A ConnectionError says that no whole answer came.
type ConnectionError struct {
	URL   string
	Err   error
	never bool // no connection was made
}

func (e *ConnectionError) Error() string {
	return fmt.Sprintf("no answer from %s: %v", e.URL, e.Err)
}

func (e *ConnectionError) Unwrap() error { return e.Err }

// NotConnected reports whether the server could not be reached at all, so that it is not running or the address is
// wrong.
func (e *ConnectionError) NotConnected() bool { return e.never }

// refused reads the envelope of an error answer.
func (a answer) refused(now time.Time) *Error {
	var envelope struct {
		Error struct {
			Code      string `json:"code"`
			Message   string `json:"message"`
			Param     string `json:"param"`
			RequestID string `json:"request_id"`
		} `json:"error"`
	}
	e := &Error{Status: a.status, RequestID: a.requestID(), Reason: a.header.Get("x-runlens-reason"),
		RetryAfter: retryAfter(a.header.Get("Retry-After"), now)}
	if json.Unmarshal(a.body, &envelope) == nil && envelope.Error.Code != "" {
		e.Code, e.Message, e.Param = envelope.Error.Code, envelope.Error.Message, envelope.Error.Param
		e.RequestID = envelope.Error.RequestID
	}
	return e
}

// unreadable says that a 200 answer is not one of this API.
func (a answer) unreadable(err error) error {
	request := ""
	if id := a.requestID(); id != "" {
		request = " (request " + id + ")"
	}
	return fmt.Errorf("the answer of %s is not one of this API%s: %w", a.url, request, err)
}
