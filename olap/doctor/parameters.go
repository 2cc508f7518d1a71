package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/runlens/runlens/olap/doctor/finding"
)

// What the largest query has in filters: as many, with 50 values of 200 characters each, every one of which may take 12
// bytes of an address.
const (
	filters    = 8
	characters = 50 * 200
)

// parameters finds what stands before ClickHouse and takes no long addresses: over HTTP a statement has its parameters
// there.
func (s Store) parameters(ctx context.Context) ([]finding.Finding, error) {
	var args []any
	var lengths []string
	for i := range filters {
		name := fmt.Sprintf("filter%d", i)
		args = append(args, clickhouse.Named(name, strings.Repeat("\U0001F600", characters)))
		lengths = append(lengths, "length({"+name+":String})")
	}
	var bytes uint64
	err := s.Conn.QueryRow(ctx, "SELECT "+strings.Join(lengths, " + "), args...).Scan(&bytes)
	if refused, ok := errors.AsType[*clickhouse.HTTPError](err); ok {
		return []finding.Finding{of(finding.Problem, "let what stands before ClickHouse take addresses of 1 MiB, as nginx "+
			"does with: large_client_header_buffers 4 1m", "queries with many or long values in filters fail: their address "+
			"is refused with HTTP status %d", refused.StatusCode)}, nil
	}
	if err != nil {
		return nil, err
	}
	return ok("the parameters of the largest query arrive"), nil
}
