package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"syscall"

	"github.com/runlens/runlens/http/conns"
	"github.com/runlens/runlens/olap/clickhouse"
)

const (
	// bodyBytes is how much memory the bodies of requests may take while they are received, beyond 16 KiB each.
	bodyBytes = 64 << 20

	// otherFiles are the descriptors that a server needs besides those of its connections: logs, locks, certificates.
	otherFiles = 64
	// fewestFiles is the least limit of open files that a server can work with.
	fewestFiles = 64

	// fewConnections are those of an address for operators, or for the programs of one person, at once.
	fewConnections = 64

	// Of all connections to the API, one address may hold a half while nobody else needs them, and an eighth once half
	// are taken: it takes more than four addresses to hold all places.
	loneShare, crowdedShare = 2, 8
	// fewestPerAddress is for servers with few descriptors.
	fewestPerAddress = 16
)

// openFiles is how many files the process may have open.
func openFiles() (int, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("read the limit of open files: %w", err)
	}
	files := int(min(limit.Cur, 1<<30))
	if files < fewestFiles {
		return 0, fmt.Errorf("the limit of open files is %d; raise it to %d or more (ulimit -n)", files, fewestFiles)
	}
	return files, nil
}

// fewCaps are the caps of every address but the API's: an admin address, the console, MCP over HTTP. They leave
// descriptors for everything else, however low the limit is.
func fewCaps() (conns.Caps, error) {
	files, err := openFiles()
	most := min(fewConnections, files/8)
	return conns.Caps{All: most, PerAddress: most}, err
}

// connectionCaps are the caps of the flags, lowered where the process may not open as many files: the store,
// the admin address and new connections must find descriptors at any time.
func (c serveCmd) connectionCaps(logger *slog.Logger) (conns.Caps, error) {
	proxies, err := parseNetworks(c.TrustedProxies)
	if err != nil {
		return conns.Caps{}, err
	}
	files, err := openFiles()
	if err != nil {
		return conns.Caps{}, err
	}
	p, err := c.named()
	if err != nil {
		return conns.Caps{}, err
	}
	caps := conns.Caps{All: c.MaxConnections, Exempt: proxies}
	available := availableFor(files, c.GlobalConcurrency, len(p.names))
	if c.IngestListen != "" {
		available /= 2 // as many for records
	}
	if available < caps.All {
		logger.Warn("fewer connections than configured: the limit of open files allows no more (ulimit -n)",
			"max_connections", available, "configured", caps.All, "open_files", files)
		caps.All = available
	}
	caps.PerAddress = max(caps.All/loneShare, fewestPerAddress)
	caps.Crowded = max(caps.All/crowdedShare, fewestPerAddress)
	if c.MaxConnectionsPerAddress != nil {
		caps.PerAddress, caps.Crowded = *c.MaxConnectionsPerAddress, 0
	}
	caps.PerAddress = min(caps.PerAddress, caps.All)
	return caps, nil
}

// availableFor is how many connections to the API a process takes that may have so many files open and runs so many
// queries at once in each of its cells. A low limit is shared out: not every connection to a store is open at all
// times.
func availableFor(files, queries, cells int) int {
	return max(files-cells*clickhouse.Connections(queries)-otherFiles-fewConnections, files/4)
}

// fitting is the cap on queries, lowered to what the store takes, so that no query waits for another one within
// the store or on the way there.
func (c serveCmd) fitting(ctx context.Context, store *clickhouse.Server, logger *slog.Logger) (int, error) {
	most, err := store.MaxQueries(ctx)
	switch {
	case err != nil:
		return 0, err
	case most < 1:
		return 0, errors.New("ClickHouse takes too few queries at once; raise its max_concurrent_queries, its " +
			"max_connections, or max_concurrent_queries_for_user in the profile of its user")
	case most >= c.GlobalConcurrency:
		return c.GlobalConcurrency, nil
	}
	logger.Warn("fewer queries at once than configured: the store runs no more",
		"global_concurrency", most, "configured", c.GlobalConcurrency)
	return most, nil
}
