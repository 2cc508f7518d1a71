package postgres

import (
	"errors"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// retryableStates are the SQLSTATE classes and codes of conditions that pass by themselves.
var retryableStates = []string{
	"08",    // connection exceptions
	"25P03", // idle in transaction for too long
	"25P04", // transaction time-out
	"40",    // transaction rollbacks: serialization failure, deadlock, conflict with recovery
	"53300", // too many connections
	"57014", // query canceled, by a time-out or by a person
	"57P",   // admin shutdown, crash shutdown, cannot connect now, database dropped
}

// Retryable reports whether the same statement may succeed later: the list is closed, everything else
// needs a person.
func Retryable(err error) bool {
	var failure *pgconn.PgError
	if errors.As(err, &failure) {
		return slices.ContainsFunc(retryableStates, func(state string) bool { return strings.HasPrefix(failure.Code, state) })
	}
	var unknown *net.DNSError
	if errors.As(err, &unknown) && unknown.IsNotFound {
		return false
	}
	var connect *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &connect) || errors.As(err, &network) || pgconn.SafeToRetry(err) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || strings.Contains(err.Error(), "conn closed")
}
