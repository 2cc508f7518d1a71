package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

const (
	// maxAttempts is how often a request that fails or is lost is sent at most. Being refused with 429 does not count.
	maxAttempts  = 5
	firstBackoff = 250 * time.Millisecond
	maxBackoff   = 10 * time.Second
)

// errTooLarge is final: a repeat would be as large.
var errTooLarge = errors.New("the answer is larger than MaxResponseBytes")

// An answer is what came back for one attempt.
type answer struct {
	url    string
	status int
	header http.Header
	body   []byte
}

func (a answer) requestID() string { return a.header.Get("x-request-id") }

// A message is what is sent. Empty fields are absent.
type message struct {
	method, path   string
	body           []byte
	kind, encoding string // of the body
}

// send repeats a request until it is answered with 200, refused for good, or out of patience.
func (c *Client) send(ctx context.Context, m message) (answer, error) {
	var waited time.Duration
	failures := 0
	for attempt := 1; ; attempt++ {
		a, err := c.once(ctx, m)
		if err == nil {
			return a, nil
		}
		if ctx.Err() != nil {
			return a, context.Cause(ctx)
		}
		wait, again := c.next(err, &failures)
		if !again || waited+wait > c.config.MaxWait {
			return a, err
		}
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < wait {
			return a, fmt.Errorf("%w before the wait of %v is over: %w", context.DeadlineExceeded, wait, err)
		}
		if c.config.OnWait != nil {
			c.config.OnWait(Wait{For: wait, Attempt: attempt, Cause: err})
		}
		select {
		case <-ctx.Done():
			return a, context.Cause(ctx)
		case <-time.After(wait):
		}
		waited += wait
	}
}

// next decides whether an attempt that ended with err is repeated, and after how long. failures counts those that were
// no 429.
func (c *Client) next(err error, failures *int) (wait time.Duration, again bool) {
	var refused *Error
	var lost *ConnectionError
	switch {
	case errors.As(err, &refused):
		if !refused.retryable() {
			return 0, false
		}
		wait = refused.RetryAfter
		if wait > 0 && refused.Status == http.StatusTooManyRequests {
			return wait, true
		}
	case errors.As(err, &lost):
		// A server that never answered is likelier not there than restarting. One without TLS does not get it.
		var certificate *tls.CertificateVerificationError
		var noTLS tls.RecordHeaderError
		if lost.never && !c.reached.Load() || errors.As(err, &certificate) || errors.As(err, &noTLS) ||
			errors.Is(err, http.ErrSchemeMismatch) || errors.Is(err, errTooLarge) {
			return 0, false
		}
	default:
		return 0, false
	}
	if *failures++; *failures >= maxAttempts {
		return 0, false
	}
	if wait == 0 {
		wait = min(firstBackoff<<(*failures-1), maxBackoff)
		wait = wait/2 + rand.N(wait/2) // callers that failed together come back apart
	}
	return wait, true
}

// once sends a request one time. The error is an *Error, a *ConnectionError or one of the configuration.
func (c *Client) once(ctx context.Context, m message) (answer, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.config.Timeout, fmt.Errorf("nothing came within %v", c.config.Timeout))
	defer cancel()
	a := answer{url: c.base}
	request, err := http.NewRequestWithContext(ctx, m.method, c.base+m.path, bytes.NewReader(m.body))
	if err != nil {
		return a, err
	}
	request.Header.Set("Authorization", "Bearer "+c.config.Key)
	request.Header.Set("User-Agent", c.config.UserAgent)
	if m.kind != "" {
		request.Header.Set("Content-Type", m.kind)
	}
	if m.encoding != "" {
		request.Header.Set("Content-Encoding", m.encoding)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return a, c.lost(ctx, err)
	}
	defer response.Body.Close()
	c.reached.Store(true)
	a.status, a.header = response.StatusCode, response.Header
	a.body, err = io.ReadAll(io.LimitReader(response.Body, c.config.MaxResponseBytes+1))
	if err == nil && int64(len(a.body)) > c.config.MaxResponseBytes {
		err = errTooLarge
	}
	if err != nil {
		return a, c.lost(ctx, err)
	}
	if a.status != http.StatusOK {
		return a, a.refused(time.Now())
	}
	return a, nil
}

func (c *Client) lost(ctx context.Context, err error) error {
	var dial *net.OpError
	never := errors.As(err, &dial) && (dial.Op == "dial" || dial.Op == "proxyconnect")
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	var wrapped *url.Error // repeats the method and the whole URL
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return &ConnectionError{URL: c.base, Err: err, never: never}
}

// retryAfter reads the header's two forms, seconds and a date; 0 where there is none.
func retryAfter(header string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(header, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(header); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}
