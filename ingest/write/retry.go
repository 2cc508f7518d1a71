package write

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/runlens/runlens/olap/backoff"
	"github.com/runlens/runlens/olap/failure"
	"github.com/runlens/runlens/olap/snapshot"
)

// retryableCodes are ClickHouse's codes of conditions that pass by themselves.
var retryableCodes = []int32{
	159, // TIMEOUT_EXCEEDED
	201, // QUOTA_EXCEEDED, until the quota's interval ends
	202, // TOO_MANY_SIMULTANEOUS_QUERIES
	209, // SOCKET_TIMEOUT
	210, // NETWORK_ERROR
	225, // NO_ZOOKEEPER
	236, // ABORTED, while a table is shut down
	241, // MEMORY_LIMIT_EXCEEDED
	242, // TABLE_IS_READ_ONLY, while a replica reconnects to its keeper
	252, // TOO_MANY_PARTS
	285, // TOO_FEW_LIVE_REPLICAS
	319, // UNKNOWN_STATUS_OF_INSERT
	394, // QUERY_WAS_CANCELLED, as a server does that ends
	439, // CANNOT_SCHEDULE_TASK
	745, // SERVER_OVERLOADED
	999, // KEEPER_EXCEPTION
}

// codeUnfinished is UNFINISHED: a try of a mutation failed, which ClickHouse goes on with, or somebody killed it. Its
// message says which, and quotes why a try failed.
const codeUnfinished = 341

var tryFailed = regexp.MustCompile(`reason: 'Code: (\d+)`)

// Retryable reports whether the same insert may succeed later: the list is closed, everything else
// needs a person.
func Retryable(err error) bool {
	switch code := failure.CodeOf(err); code {
	case 0:
	case codeUnfinished:
		why := tryFailed.FindStringSubmatch(err.Error())
		if why == nil {
			return !strings.Contains(err.Error(), "was killed")
		}
		return slices.ContainsFunc(retryableCodes, func(c int32) bool { return strconv.Itoa(int(c)) == why[1] })
	default:
		return slices.Contains(retryableCodes, code)
	}
	if errors.Is(err, failure.ErrOverloaded) {
		return true
	}
	// What answers in place of ClickHouse, as a gateway does while that is started again.
	if other, ok := errors.AsType[*clickhouse.HTTPError](err); ok {
		return other.StatusCode == http.StatusTooManyRequests ||
			other.StatusCode >= http.StatusBadGateway // 502 to 504, and those of gateways that have more
	}
	// An address that reaches two nodes is wrapped in what seems to be an error of the network.
	var lasting interface{ Permanent() bool }
	if errors.As(err, &lasting) && lasting.Permanent() {
		return false
	}
	var network net.Error
	return errors.As(err, &network) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		errors.Is(err, clickhouse.ErrAcquireConnTimeout)
}

// Describe puts what ClickHouse said into words for an operator; its own text, which can contain paths and
// statements, is in its log and, for what was tried again, in ours.
func Describe(err error) error {
	var exception *clickhouse.Exception
	switch {
	case !errors.As(err, &exception):
		return err
	case exception.Code == failure.CodeNoSpace:
		return errors.New("the disk of ClickHouse is full; free some space and run it again, what is stored stays")
	}
	if refusal := failure.Refusal(exception); refusal != "" {
		return errors.New(refusal)
	}
	if overload := failure.Of("write", exception); errors.Is(overload, failure.ErrOverloaded) {
		return overload
	}
	return fmt.Errorf("ClickHouse failed with code %d; its log says why", exception.Code)
}

// A Retry is a way to try something again that failed for a reason that passes by itself.
type Retry struct {
	Logger   *slog.Logger
	Patience time.Duration // from the first failure; 0 is endless
	Count    func()        // called at every further attempt; nil for nothing
}

const (
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
)

// Do calls attempt until it succeeds, fails for a reason that does not pass, the patience is
// at its end, or ctx is done. It returns the last error, in words for an operator.
func (r Retry) Do(ctx context.Context, what string, attempt func() error) error {
	return r.DoIf(ctx, what, Retryable, attempt)
}

// DoIf is Do with an allow-list of its own.
func (r Retry) DoIf(ctx context.Context, what string, retryable func(error) bool, attempt func() error) error {
	var deadline time.Time
	failures := backoff.Failures{Logger: r.Logger, First: firstPause, Longest: longestPause}
	for {
		err := attempt()
		if err == nil {
			failures.Succeeded(ctx, what+" succeeded after it had failed")
			return nil
		}
		if ctx.Err() != nil || !retryable(err) {
			return Describe(err)
		}
		now := time.Now()
		if deadline.IsZero() {
			deadline = now.Add(r.Patience)
		}
		if r.Patience > 0 && now.After(deadline) {
			return Describe(err)
		}
		if r.Count != nil {
			r.Count()
		}
		pause := failures.Failed(ctx, slog.LevelWarn, what+" failed, trying again", "error", err)
		if err := snapshot.Pause(ctx, pause); err != nil {
			return err
		}
	}
}
