package clickhouse

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"golang.org/x/sync/errgroup"

	"github.com/runlens/runlens/olap/failure"
)

var (
	// ErrOtherNode is returned when an address reaches ClickHouse nodes that have tables of their own. What one of them
	// stores the other does not know. Nothing is answered from another node than the one that this process met first.
	ErrOtherNode error = permanent("the address reaches ClickHouse nodes that have tables of their own; give the " +
		"address of one node, or start runlens again if its tables were restored")
	// ErrCached is returned when an answer is one of before: what was stored since is not in it.
	ErrCached error = permanent("a cache answers for ClickHouse; give the address of ClickHouse itself, or of a proxy " +
		"that caches nothing")
	// ErrStripped is returned when statements come to ClickHouse without their settings: it may answer them with other
	// rows.
	ErrStripped error = permanent("statements lose their settings on the way to ClickHouse; give the address of " +
		"ClickHouse itself, or of a proxy that passes on all parameters")
)

// A permanent error says that trying again does not help, whatever it is wrapped in.
type permanent string

func (p permanent) Error() string { return string(p) }

// Permanent is what package write asks of an error.
func (permanent) Permanent() bool { return true }

func isPermanent(err error) bool {
	_, ok := errors.AsType[permanent](err)
	return ok
}

// refusalInterval is the least time between two log lines about refused nodes.
const refusalInterval = time.Minute

// startConnections is how many connections the start opens. A balancer that takes turns shows two nodes by the second,
// one that draws lots with a probability of 1 in 128 not at all.
const startConnections = 8

// An identity tells ClickHouse nodes apart. Each part is a UUID, or empty where there is none: `clickhouse local`, and
// so the embedded engine, has none of the server, and the rest is made by the first start.
type identity struct {
	server   string
	database string
	table    string // runs
}

// sharesStore reports whether two identities are of one store: of nodes that share the tables. Before there are tables
// it is one server, or the nodes of a cluster that share the database.
func (a identity) sharesStore(b identity) bool {
	if a.table != "" && b.table != "" {
		return a.table == b.table
	}
	return a.server != "" && a.server == b.server || a.database != "" && a.database == b.database
}

func (a identity) String() string {
	return fmt.Sprintf("server %s with database %s and table runs %s", cmp.Or(a.server, "?"), cmp.Or(a.database, "?"),
		cmp.Or(a.table, "?"))
}

// parseIdentity reads the answer to the statement of identify.
func parseIdentity(answer string) (identity, error) {
	const none = "00000000-0000-0000-0000-000000000000"
	parts := strings.Split(strings.ReplaceAll(answer, none, ""), " ")
	if len(parts) != 4 {
		return identity{}, errors.New("ClickHouse does not say which node it is")
	}
	return identity{parts[0], parts[1], parts[2]}, nil
}

// quoted is the SQL of a text.
func quoted(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text) + "'"
}

// identify is the statement that asks a node for its identity, and for more. No two answers are the same.
func identify(database string, more ...string) string {
	name := quoted(database)
	identity := "concat(toString(serverUUID()), ' ', " +
		"ifNull((SELECT toString(uuid) FROM system.databases WHERE name = " + name + "), ''), ' ', " +
		"ifNull((SELECT toString(uuid) FROM system.tables WHERE database = " + name + " AND name = 'runs'), ''), ' ', " +
		"toString(generateUUIDv4()))"
	// It may be sent without the pinned settings.
	return "SELECT " + strings.Join(append([]string{identity}, more...), ", ") + " SETTINGS use_query_cache = 0"
}

// nodes is what a Server that runs elsewhere knows of the nodes at its address. It is safe for concurrent use.
//
// Every new connection is asked for the node's identity before the first statement is sent on it, by nativeGuard or
// httpGuard. The first identity is the store's; what is made later, such as the table, is learned then.
type nodes struct {
	statement string
	sent      string // over HTTP: a setting that comes with the statement
	logger    *slog.Logger

	mu      sync.Mutex
	last    string // answer to identify
	store   identity
	names   map[string]bool // display names of nodes that were found to share the store
	servers map[string]bool // UUIDs of the servers of such nodes
	started bool            // refusals are logged from then on: before, the error says it
	logged  time.Time       // the last refusal
}

// guardNodes has every connection that is made with the options checked.
func guardNodes(options *clickhouse.Options, logger *slog.Logger) *nodes {
	n := &nodes{statement: identify(options.Auth.Database), logger: logger, names: map[string]bool{},
		servers: map[string]bool{}}
	if options.Protocol == clickhouse.HTTP {
		n.guardHTTP(options)
	} else {
		n.guardNative(options)
	}
	return n
}

// check takes the answer of a node to the statement. It returns an ErrOtherNode unless the node shares the store, and
// an ErrCached if no node has answered.
func (n *nodes) check(answer string) error {
	seen, err := parseIdentity(answer)
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if answer == n.last {
		return n.refuse(ErrCached)
	}
	n.last = answer
	if unknown := (identity{}); n.store == unknown {
		n.store = seen
	} else if !n.store.sharesStore(seen) {
		return n.refuse(fmt.Errorf("%w: it reaches %v; and %v", ErrOtherNode, n.store, seen))
	}
	n.servers[seen.server] = true
	n.store.database = cmp.Or(n.store.database, seen.database)
	n.store.table = cmp.Or(n.store.table, seen.table)
	return nil
}

func (n *nodes) refuse(err error) error {
	if n.started && time.Since(n.logged) >= refusalInterval {
		n.logged = time.Now()
		n.logger.Error("refused a connection to ClickHouse", "error", err)
	}
	return err
}

// survey opens some connections, each of which is checked, and asks on each once more: a balancer that reads HTTP may
// send every request elsewhere.
func (n *nodes) survey(ctx context.Context, options *clickhouse.Options) error {
	if n == nil {
		return nil
	}
	if err := n.visitInTurn(ctx, options); err != nil { // its node is the store
		return err
	}
	// The others are met side by side: each may wait for an address that doesn't answer.
	group, visiting := errgroup.WithContext(ctx)
	for range startConnections - 1 {
		group.Go(func() error { return n.visitInTurn(visiting, options) })
	}
	for _, ctx := range addresses(visiting, options) {
		group.Go(func() error {
			err := n.visit(ctx, options)
			if isPermanent(err) || failure.CodeOf(err) == failure.CodeUnknownDatabase {
				return err
			}
			return nil // one that doesn't answer now is found while running
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.started = true
	return nil
}

// visitInTurn is visit that waits for a while where ClickHouse takes no more statements at once from its user, whose
// others may be those of the same survey.
func (n *nodes) visitInTurn(ctx context.Context, options *clickhouse.Options) error {
	const pause = 50 * time.Millisecond
	for began := time.Now(); ; {
		err := n.visit(ctx, options)
		if failure.CodeOf(err) != failure.CodeTooManyQueries || time.Since(began) > failure.Silence {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

// addresses returns a context for connections to each address of a name that has several. Where they come in one order,
// the others are reached only while the first one is away: whatever starts then would take another node for the store.
func addresses(ctx context.Context, options *clickhouse.Options) (each []context.Context) {
	for _, addr := range options.Addr {
		host, _, _ := net.SplitHostPort(addr)
		found, err := elsewhere.Resolver.LookupHost(ctx, host)
		if err != nil || len(found) < 2 {
			continue
		}
		for _, address := range found {
			each = append(each, context.WithValue(ctx, addressKey{}, hostAddress{host, address}))
		}
	}
	return each
}

type (
	addressKey  struct{} // has a hostAddress, where a connection is for one address of a name
	hostAddress struct{ host, address string }
)

// chosen returns what to dial instead of host and port: the address of the name that a context of
// addresses is for.
func chosen(ctx context.Context, addr string) string {
	of, _ := ctx.Value(addressKey{}).(hostAddress)
	if host, port, err := net.SplitHostPort(addr); err == nil && of.host == host {
		return net.JoinHostPort(of.address, port)
	}
	return addr
}

// dialElsewhere connects to a server that runs elsewhere.
func dialElsewhere(ctx context.Context, network, addr string) (net.Conn, error) {
	return elsewhere.DialContext(ctx, network, chosen(ctx, addr))
}

func (n *nodes) visit(ctx context.Context, options *clickhouse.Options) error {
	own := *options
	conn, err := clickhouse.Open(&own)
	if err != nil {
		return err
	}
	defer conn.Close()
	var answer string
	if err := conn.QueryRow(ctx, identify(options.Auth.Database)).Scan(&answer); err != nil {
		return err
	}
	return n.check(answer)
}
