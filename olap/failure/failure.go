// Package failure describes what went wrong in ClickHouse in words that may be logged.
package failure

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// ErrOverloaded is returned when ClickHouse, or the pool of connections to it, has too much to do to take
// another query. The same query may succeed a little later.
var ErrOverloaded = errors.New("ClickHouse has too much to do")

// errNoMemory is ErrOverloaded where all that ClickHouse does together takes the memory that it may have.
var errNoMemory = fmt.Errorf("%w: its memory is used up; do less at once, or give it more, which "+
	"RUNLENS_ENGINE_MEMORY does for the embedded engine", ErrOverloaded)

// ErrTooExpensive is returned when a statement reached a limit of its own in ClickHouse: of time, memory, rows or
// bytes. The same query would reach it again.
var ErrTooExpensive = errors.New("the query is too expensive")

// Silence is the patience of Within for what ClickHouse answers within milliseconds unless it has far too much to do.
const Silence = 10 * time.Second

// Within reads what others wait for, too, in so much time at most, also where the context has none: an answer of a host
// that could not be reached for a while may come minutes after the host is back. What takes longer is an ErrOverloaded.
func Within(ctx context.Context, patience time.Duration, read func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := read(limited)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("%w: %w", ErrOverloaded, err)
	}
	return err
}

// A LateError is returned for a statement that was under way when the deadline of its request came.
type LateError struct {
	Ran time.Duration // from sending the statement to the deadline
	err error
}

func (e *LateError) Error() string {
	return fmt.Sprintf("%v after %v", e.err, e.Ran.Round(time.Millisecond))
}

func (e *LateError) Unwrap() error { return context.DeadlineExceeded }

// OfStatement is Of for a statement that was sent with a context at an instant, after it had a connection to ClickHouse
// or while it waited for one. Where the context's deadline ended it, the error is a *LateError.
func OfStatement(ctx context.Context, began time.Time, doing string, err error) error {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return Of(doing, err)
	}
	described := describe(doing, err)
	if errors.Is(described, ErrOverloaded) || errors.Is(described, ErrTooExpensive) {
		return described
	}
	deadline, _ := ctx.Deadline()
	return &LateError{deadline.Sub(began), described}
}

// Codes of ClickHouse's exceptions that ask for a person.
const (
	CodeUnknownDatabase = 81  // UNKNOWN_DATABASE
	CodeReadonly        = 164 // READONLY
	CodeNoSpace         = 243 // NOT_ENOUGH_SPACE
	CodeConstraint      = 452 // SETTING_CONSTRAINT_VIOLATION
	CodeAccessDenied    = 497 // ACCESS_DENIED
	CodeAuthentication  = 516 // AUTHENTICATION_FAILED
)

// A described error is an exception of ClickHouse in words that may be logged.
type described struct {
	error
	code int32
}

func (d described) Unwrap() error { return d.error }

// CodeOf is the code of ClickHouse's exception in an error, also in one of Of; 0 for any other error, and for an
// ErrOverloaded.
func CodeOf(err error) int32 {
	if exception, ok := errors.AsType[*clickhouse.Exception](err); ok {
		return exception.Code
	}
	if d, ok := errors.AsType[described](err); ok {
		return d.code
	}
	return 0
}

// Codes of ClickHouse by which it refuses a query because of others, or of what it takes.
const (
	codeTooManyRows    = 158 // TOO_MANY_ROWS
	codeTimeout        = 159 // TIMEOUT_EXCEEDED
	codeTooSlow        = 160 // TOO_SLOW
	CodeTooManyQueries = 202 // TOO_MANY_SIMULTANEOUS_QUERIES
	codeMemoryLimit    = 241 // MEMORY_LIMIT_EXCEEDED; the message says of what
	codeTooManyBytes   = 307 // TOO_MANY_BYTES
	codeTooManyResults = 396 // TOO_MANY_ROWS_OR_BYTES
	codeNoThread       = 439 // CANNOT_SCHEDULE_TASK
	codeOverloaded     = 745 // SERVER_OVERLOADED: tasks wait too long for a processor

	// queryMemory is in the message of codeMemoryLimit where it is the query's own limit, not that of a user or of all.
	queryMemory = "Query memory limit"
)

// exceptionName finds the symbolic name that ClickHouse puts after a message.
var exceptionName = regexp.MustCompile(`\(([A-Z][A-Z0-9_]+)\)`)

// Of describes an error of the store, met while doing something, in words that may be logged: ClickHouse's messages
// quote the statement with its parameters, which can be people's identifiers, so that only the code and its
// name are kept. ClickHouse's own log has the rest, under the query's id.
func Of(doing string, err error) error {
	// Over the native protocol nothing came on a connection that ClickHouse has taken.
	var network *net.OpError
	if errors.As(err, &network) && network.Op == "read" && network.Timeout() {
		return ErrOverloaded
	}
	return describe(doing, err)
}

// describe is Of where a read that took too long may be due to a deadline of ours.
func describe(doing string, err error) error {
	// The pool has none free, or over HTTP nothing came on a new one.
	if errors.Is(err, clickhouse.ErrAcquireConnTimeout) {
		return ErrOverloaded
	}
	// The address of a request over HTTP has the parameters as well.
	if request, ok := errors.AsType[*url.Error](err); ok {
		return fmt.Errorf("%s: %w", doing, request.Err)
	}
	var exception *clickhouse.Exception
	if !errors.As(err, &exception) {
		return fmt.Errorf("%s: %w", doing, err)
	}
	reason := reasonOf(exception)
	if errors.Is(reason, ErrOverloaded) {
		return reason
	}
	if refusal := Refusal(exception); refusal != "" {
		return described{fmt.Errorf("%s: %s", doing, refusal), exception.Code}
	}
	name := "unnamed"
	if all := exceptionName.FindAllStringSubmatch(exception.Message, -1); all != nil {
		name = all[len(all)-1][1]
	}
	said := fmt.Errorf("%s: ClickHouse exception %d %s", doing, exception.Code, name)
	if reason != nil {
		said = fmt.Errorf("%w: %w", said, reason)
	}
	return described{said, exception.Code}
}

// setting finds the name of a setting that a profile forbids, which is all that is kept of the message.
var setting = regexp.MustCompile(`^Setting (\w+) should|Cannot modify '(\w+)' setting`)

// Refusal says in words what ClickHouse refuses its user, as after its password, rights or profile were changed; empty
// for any other exception. Over the native protocol exceptions come without their names.
func Refusal(e *clickhouse.Exception) string {
	switch e.Code {
	case CodeReadonly, CodeConstraint:
		if found := setting.FindStringSubmatch(e.Message); found != nil {
			return fmt.Sprintf("the profile of ClickHouse's user forbids the setting %s that statements are sent with "+
				"(exception %d)", found[1]+found[2], e.Code)
		}
	case CodeUnknownDatabase:
		return "the database does not exist (exception 81 UNKNOWN_DATABASE); create it, or GRANT CREATE DATABASE to the user"
	case CodeAccessDenied:
		return "ClickHouse refuses its user a right (exception 497 ACCESS_DENIED); 'runlens doctor' says which"
	case CodeAuthentication:
		return "ClickHouse refuses the user's name or password (exception 516 AUTHENTICATION_FAILED)"
	}
	return ""
}

// reasonOf is ErrOverloaded or one that wraps it, ErrTooExpensive, or nil for anything else.
func reasonOf(e *clickhouse.Exception) error {
	switch e.Code {
	case CodeTooManyQueries, codeNoThread, codeOverloaded:
		return ErrOverloaded
	case codeTooManyRows, codeTimeout, codeTooSlow, codeTooManyBytes, codeTooManyResults:
		return ErrTooExpensive
	case codeMemoryLimit:
		if strings.Contains(e.Message, queryMemory) {
			return ErrTooExpensive
		}
		return errNoMemory
	}
	return nil
}
