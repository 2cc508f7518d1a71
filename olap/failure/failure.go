// Package failure describes what went wrong in ClickHouse in words that may be logged.
package failure

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// ErrOverloaded is returned when ClickHouse, or the pool of connections to it, has too much to do to take
// another query. The same query may succeed a little later.
var ErrOverloaded = errors.New("ClickHouse has too much to do")

// Codes of ClickHouse by which it refuses a query because of others.
const (
	codeTooManyQueries = 202 // TOO_MANY_SIMULTANEOUS_QUERIES
	codeMemoryLimit    = 241 // MEMORY_LIMIT_EXCEEDED; of all queries where the message says so
	codeNoThread       = 439 // CANNOT_SCHEDULE_TASK

	// totalMemory begins the message of codeMemoryLimit where it is not the query's own limit.
	totalMemory = "(total)"
)

// exceptionName finds the symbolic name that ClickHouse puts after a message.
var exceptionName = regexp.MustCompile(`\(([A-Z][A-Z0-9_]+)\)`)

// Of describes an error of the store, met while doing something, in words that may be logged: ClickHouse's messages
// quote the statement with its parameters, which can be people's identifiers, so that only the code and its
// name are kept. ClickHouse's own log has the rest, under the query's id.
func Of(doing string, err error) error {
	// The address of a request over HTTP has the parameters as well.
	var request *url.Error
	if errors.As(err, &request) {
		return fmt.Errorf("%s: %w", doing, request.Err)
	}
	var exception *clickhouse.Exception
	if errors.Is(err, clickhouse.ErrAcquireConnTimeout) {
		return ErrOverloaded
	}
	if !errors.As(err, &exception) {
		return fmt.Errorf("%s: %w", doing, err)
	}
	if overloaded(exception) {
		return ErrOverloaded
	}
	name := "unnamed"
	if all := exceptionName.FindAllStringSubmatch(exception.Message, -1); all != nil {
		name = all[len(all)-1][1]
	}
	return fmt.Errorf("%s: ClickHouse exception %d %s", doing, exception.Code, name)
}

func overloaded(e *clickhouse.Exception) bool {
	switch e.Code {
	case codeTooManyQueries, codeNoThread:
		return true
	case codeMemoryLimit:
		return strings.Contains(e.Message, totalMemory)
	}
	return false
}
