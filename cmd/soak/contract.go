package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
)

// statusOf gives every error code its status (spec section 7, contract 4.14).
var statusOf = map[string]int{
	"invalid_query": 400, "unknown_member": 400, "range_too_large": 400, "invalid_cursor": 400,
	"unauthorized": 401, "insufficient_scope": 403, "restricted_key": 403, "not_found": 404, "method_not_allowed": 405,
	"rate_limited": 429, "internal_error": 500,
}

// messageOf gives every error code but rate_limited its fixed message (spec section 7).
var messageOf = map[string]string{
	"invalid_query": "Invalid analytics query.", "unknown_member": "Unknown analytics member.",
	"range_too_large": "Analytics date range is too large.", "invalid_cursor": "Invalid analytics cursor.",
	"unauthorized": "Invalid API key", "insufficient_scope": "API key does not have the required scope",
	"restricted_key": "API key does not permit this query",
	"internal_error": "An internal error occurred",
}

// withoutParam are the codes whose envelope names no place (contract 4.18).
var withoutParam = []string{"unauthorized", "insufficient_scope", "restricted_key", "rate_limited", "internal_error"}

var requestIDPattern = regexp.MustCompile(`^[A-Za-z0-9._:/=-]{1,64}$`)

// A refusal is the content of the error envelope (spec section 7).
type refusal struct {
	Code      string  `json:"code"`
	Message   string  `json:"message"`
	RequestID string  `json:"request_id"`
	Param     *string `json:"param"`
}

// breach says how an answer departs from the contract whatever the question was, or is empty. A 500 is no breach here:
// whether one was due is for the caller to say.
func (a answer) breach() string {
	id := a.header.Values("X-Request-Id")
	switch {
	case len(id) != 1 || !requestIDPattern.MatchString(id[0]):
		return fmt.Sprintf("%d with x-request-id %q", a.status, id)
	case a.sentID != "" && id[0] != a.sentID:
		return fmt.Sprintf("%d with the x-request-id %q, the request sent %q", a.status, id[0], a.sentID)
	case a.header.Get("Content-Type") != "application/json":
		return fmt.Sprintf("%d with the content type %q", a.status, a.header.Get("Content-Type"))
	case a.status == http.StatusOK || a.toHead:
		return ""
	}
	r, err := a.refusal()
	if err != nil {
		return fmt.Sprintf("%d with the body %.200q: %v", a.status, a.body, err)
	}
	return r.breach(a.status, id[0], a.header)
}

// refusal reads the envelope.
func (a answer) refusal() (refusal, error) {
	var envelope struct {
		Error *refusal `json:"error"`
	}
	decoder := json.NewDecoder(bytes.NewReader(a.body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&envelope); err != nil {
		return refusal{}, err
	}
	if envelope.Error == nil {
		return refusal{}, fmt.Errorf("no error in it")
	}
	return *envelope.Error, nil
}

func (r refusal) breach(status int, id string, header http.Header) string {
	message, fixed := messageOf[r.Code]
	switch {
	case statusOf[r.Code] != status:
		return fmt.Sprintf("%d with the code %q", status, r.Code)
	case r.RequestID != id:
		return fmt.Sprintf("%d with request_id %q under the header %q", status, r.RequestID, id)
	case r.Message == "" || fixed && r.Message != message:
		return fmt.Sprintf("%d with the message %q", status, r.Message)
	case r.Param != nil && slices.Contains(withoutParam, r.Code):
		return fmt.Sprintf("%d with param %q", status, *r.Param)
	case status == http.StatusTooManyRequests:
		if wait, err := strconv.Atoi(header.Get("Retry-After")); err != nil || wait < 1 || wait > 60 {
			return fmt.Sprintf("429 with Retry-After %q", header.Get("Retry-After"))
		}
	}
	return ""
}

// outcome names the answer in a count: its status, and the code of a refusal.
func (a answer) outcome() string {
	if a.status == http.StatusOK {
		return "200"
	}
	r, _ := a.refusal() // without an envelope the status says it all
	return fmt.Sprintf("%d %s", a.status, r.Code)
}
