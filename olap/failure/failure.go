// Package failure describes what went wrong in ClickHouse in words that may be logged.
package failure

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// ErrOverloaded is returned when ClickHouse has too many queries to take another.
var ErrOverloaded = errors.New("ClickHouse runs too many queries")

// codeTooManyQueries is ClickHouse's TOO_MANY_SIMULTANEOUS_QUERIES.
const codeTooManyQueries = 202

// exceptionName finds the symbolic name that ClickHouse puts behind a message.
var exceptionName = regexp.MustCompile(`\(([A-Z][A-Z0-9_]+)\)`)

// Of describes an error of the store, met while doing something, in words that may be logged: ClickHouse's messages quote the
// statement with its parameters, which can be people's identifiers, so that only the code and its
// name are kept. ClickHouse's own log has the rest, under the query's id.
func Of(doing string, err error) error {
	// The address of a request over HTTP holds the parameters as well.
	var request *url.Error
	if errors.As(err, &request) {
		return fmt.Errorf("%s: %w", doing, request.Err)
	}
	var exception *clickhouse.Exception
	if !errors.As(err, &exception) {
		return fmt.Errorf("%s: %w", doing, err)
	}
	if exception.Code == codeTooManyQueries {
		return ErrOverloaded
	}
	name := "unnamed"
	if all := exceptionName.FindAllStringSubmatch(exception.Message, -1); all != nil {
		name = all[len(all)-1][1]
	}
	return fmt.Errorf("%s: ClickHouse exception %d %s", doing, exception.Code, name)
}
