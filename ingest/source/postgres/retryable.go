package postgres

import (
	"errors"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// canceled is the SQLSTATE of a query that was canceled, by a time-out or by a person.
const canceled = "57014"

// retryableStates are the SQLSTATE classes and codes of conditions that pass by themselves.
var retryableStates = []string{
	"08",    // connection exceptions
	"25P03", // idle in transaction for too long
	"25P04", // transaction time-out
	"40",    // transaction rollbacks: serialization failure, deadlock, conflict with recovery
	"53",    // insufficient resources: memory, disk, connections, and limits such as temp_file_limit
	"55P03", // lock not available within lock_timeout
	canceled,
	"57P", // admin shutdown, crash shutdown, cannot connect now, database dropped
}

// errStatementPooling is what a pooler's refusal of a transaction means. It does not pass.
var errStatementPooling = errors.New("the pooler in front of the source gives connections away after each statement " +
	"(pool_mode = statement), and what is read in several has to be read in one transaction: set pool_mode = " +
	"transaction for this database in pgbouncer.ini, or name PostgreSQL itself in --source")

// beginFailed is why no transaction began. PgBouncer says it in its text only: its code stands for all of its errors.
func beginFailed(err error) error {
	var failure *pgconn.PgError
	if errors.As(err, &failure) && strings.Contains(failure.Message, "statement pooling mode") {
		return errStatementPooling
	}
	return err
}

// refusals are what PgBouncer says, with the code of all of its errors, of what does not pass by itself.
var refusals = []string{"unsupported startup parameter", "no such database", "no such user", "authentication failed"}

// Retryable reports whether the same statement may succeed later: the list is closed, everything else
// needs a person.
func Retryable(err error) bool {
	if failure, ok := errors.AsType[*pgconn.PgError](err); ok {
		if slices.ContainsFunc(refusals, func(text string) bool { return strings.Contains(failure.Message, text) }) {
			return false
		}
		return slices.ContainsFunc(retryableStates, func(state string) bool { return strings.HasPrefix(failure.Code, state) })
	}
	var network net.Error
	return errors.Is(err, errChanged) || NotConnected(err) || errors.As(err, &network) || pgconn.SafeToRetry(err) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || strings.Contains(err.Error(), "conn closed")
}

// UnknownHost reports whether a failure is that no host has the name of the source. It is misspelled where it was never
// reached; a container that is stopped has no name either.
func UnknownHost(err error) bool {
	unknown, ok := errors.AsType[*net.DNSError](err)
	return ok && unknown.IsNotFound
}

// NotConnected reports whether a failure is that no connection was made.
func NotConnected(err error) bool {
	_, ok := errors.AsType[*pgconn.ConnectError](err)
	return ok
}

// Describe puts the failure of a long reading into words for an operator, without what the source wrote.
func Describe(err error) string {
	if reached, ok := errors.AsType[serverError](err); ok {
		return reached.Error()
	}
	var failure *pgconn.PgError
	switch {
	case !errors.As(err, &failure):
		return "the log says why"
	case failure.Code == canceled:
		return "the source canceled a statement, as its statement_timeout does. It reads whole tables: give the role of " +
			"--source a longer one (ALTER ROLE ... SET statement_timeout) and start the worker again"
	default:
		return "the source failed with SQLSTATE " + failure.Code + "; the log says why"
	}
}
