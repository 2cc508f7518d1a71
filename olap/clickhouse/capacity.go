package clickhouse

import (
	"context"
	"fmt"
	"math"

	"github.com/runlens/runlens/olap/failure"
)

// The pool, the cap on API queries and what the server takes fit together by this arithmetic, so that nobody
// ever waits inside the driver, which gives up after dialTimeout:
//
//	Connections(queries) = queries × connsPerQuery + otherConns  <=  what the server takes
const (
	// connsPerQuery is how many statements one API query has under way at once: its own, the one that watches
	// refreshes, and the one that reads the insert counter.
	connsPerQuery = 3
	// otherConns are for keys, maintenance, metrics, health and copying.
	otherConns = 32

	// embeddedConcurrentQueries is the embedded engine's max_concurrent_queries. It bounds threads and memory on
	// a small machine; the processes that share an engine share it.
	embeddedConcurrentQueries = 256
	// embeddedConnections is its max_connections. A connection takes a thread, which stays when it is closed; by default
	// there are up to 4,096. The others wait until one is closed, so that there are enough for all queries and for
	// those that processes keep (maxIdleConns).
	embeddedConnections = 4 * embeddedConcurrentQueries
	// embeddedShare is the part of them that one process may plan with.
	embeddedShare = 0.875
)

// Connections is the size of the pool of a process that runs so many API queries at once.
func Connections(queries int) int { return queries*connsPerQuery + otherConns }

// MaxQueries is the most API queries that one process may run at once, so that the server takes all their
// statements. A server without limits takes any number. Limits that this user cannot read count as none.
func (s *Server) MaxQueries(ctx context.Context) (int, error) {
	if s.Embedded() {
		share := embeddedShare * embeddedConcurrentQueries
		return (int(share) - otherConns) / connsPerQuery, nil
	}
	// max_connections counts the connections of all clients, the others limit statements.
	const limits = `SELECT ifNull(min(toInt64OrNull(value)), 0) FROM (
		SELECT value FROM system.server_settings WHERE name IN ('max_concurrent_queries', 'max_concurrent_select_queries', ` +
		`'max_connections')
		UNION ALL
		SELECT value FROM system.settings WHERE name IN ('max_concurrent_queries_for_user', ` +
		`'max_concurrent_queries_for_all_users')
	) WHERE value != '0'`
	var most int64
	err := s.conn.QueryRow(ctx, limits).Scan(&most)
	switch {
	case failure.CodeOf(err) == failure.CodeAccessDenied, err == nil && most == 0:
		return math.MaxInt, nil
	case err != nil:
		return 0, fmt.Errorf("read the limits of ClickHouse: %w", err)
	}
	return int(most-otherConns) / connsPerQuery, nil
}
