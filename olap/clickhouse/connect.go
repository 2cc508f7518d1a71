package clickhouse

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/olap/cost"
	"github.com/runlens/runlens/olap/silence"
)

const (
	// dialTimeout bounds the wait for a connection that ClickHouse has answered on.
	dialTimeout = 10 * time.Second
	// readTimeout bounds the wait for a single answer; whoever wants less sets a deadline on the context.
	readTimeout = 10 * time.Minute
	// idleConnTimeout is shorter than the time after which any server closes an idle connection
	// (10 s in the oldest ones), so that no request meets a closing one.
	idleConnTimeout = 8 * time.Second
	maxIdleConns    = 16
	// maxSilence is how long a host may take nothing that is sent to it, and answer none of the system's probes while a
	// statement runs: a server may write a large block of an insert before it reads on.
	maxSilence = 150 * time.Second
)

// elsewhere connects to servers that run elsewhere. It waits for less than dialTimeout, so that a host that is away is
// told from one that has too much to do (package failure).
var elsewhere = &net.Dialer{Timeout: 4 * time.Second, Control: silence.End(maxSilence)}

// A Server is a ClickHouse to work with: one that runs elsewhere, or the embedded engine. It is the same for its users.
// It is safe for concurrent use.
type Server struct {
	options *clickhouse.Options
	conn    driver.Conn
	engine  *engine // nil for a server that runs elsewhere
	nodes   *nodes  // nil for the embedded engine, as the next one
	// policies are looked for every policiesAfter.
	policies *policies
}

// Open connects to the server of config.URL, or starts or joins the embedded engine. It returns once a
// query succeeds and the database exists. Errors say what to do; they carry no password. An address that reaches nodes
// with tables of their own is an ErrOtherNode, here and from every later statement that would be sent to another node;
// one where a cache answers is an ErrCached, and one that loses settings an ErrStripped.
// A user from whom rows are hidden is an ErrRowPolicy, here and within policiesAfter.
func Open(ctx context.Context, config Config) (*Server, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Server{}
	if config.URL != "" {
		if s.options, err = serverOptions(config); err != nil {
			return nil, err
		}
	} else {
		if s.engine, err = openEngine(ctx, config); err != nil {
			return nil, fmt.Errorf("embedded engine: %w", err)
		}
		s.options = s.engine.options(config)
	}
	if config.Database != "" {
		s.options.Auth.Database = config.Database
	}
	if s.options.Auth.Database == "" {
		s.options.Auth.Database = DefaultDatabase
	}
	if s.engine == nil {
		s.nodes = guardNodes(s.options, config.Logger)
	}
	if err := s.connect(ctx, config); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Conn returns the pool of connections. It survives the end and the restart of the server. Meanwhile statements wait
// for the embedded engine, for restartPatience at most; what only reads (Query, QueryRow, Select) runs again once when
// its connection died over HTTP. Anything else fails then: it may have had its effect.
func (s *Server) Conn() driver.Conn { return s.conn }

// DB returns a new database/sql handle on the same server and database, for the sake of
// golang-migrate. The caller closes it.
func (s *Server) DB() (*sql.DB, error) { return s.nodes.openDB(s.options), nil }

// Database returns the name of the database.
func (s *Server) Database() string { return s.options.Auth.Database }

// Embedded reports whether this is the embedded engine.
func (s *Server) Embedded() bool { return s.engine != nil }

// Servers returns how many ClickHouse servers the connections have met that share the store: 1 for most addresses.
func (s *Server) Servers() int {
	if s.nodes == nil {
		return 1
	}
	s.nodes.mu.Lock()
	defer s.nodes.mu.Unlock()
	return len(s.nodes.servers)
}

// Version returns ClickHouse's version, such as "26.7.2.1".
func (s *Server) Version(ctx context.Context) (string, error) {
	var version string
	err := s.conn.QueryRow(ctx, "SELECT version()").Scan(&version)
	return version, err
}

// Uptime returns for how long ClickHouse has been running, to the second.
func (s *Server) Uptime(ctx context.Context) (time.Duration, error) {
	var seconds uint32
	err := s.conn.QueryRow(ctx, "SELECT uptime()").Scan(&seconds)
	return time.Duration(seconds) * time.Second, err
}

// Close closes the connections and leaves the embedded engine, which ends with its last user.
func (s *Server) Close() error {
	var err error
	s.policies.close()
	if s.conn != nil {
		err = s.conn.Close()
	}
	if s.engine != nil {
		s.engine.close()
	}
	return err
}

// connect makes the database and opens the pool. That the database cannot be made is no failure
// where it exists. (Not the other way round: the driver leaks a connection whose database is unknown,
// and an open connection delays the end of the embedded engine.)
func (s *Server) connect(ctx context.Context, config Config) error {
	creating := s.createDatabase(ctx)
	conn, err := clickhouse.Open(s.options)
	if err != nil {
		return err
	}
	err = conn.Ping(ctx)
	if err == nil {
		err = s.nodes.survey(ctx, s.options)
	}
	if err == nil && s.nodes != nil {
		s.policies, err = watchPolicies(ctx, conn, config)
	}
	if err != nil {
		conn.Close()
		if err = unreached(err); creating != nil && !isPermanent(err) {
			if creating = unreached(creating); creating.Error() != err.Error() {
				err = errors.Join(err, creating)
			}
		}
		return fmt.Errorf("connect to ClickHouse at %s: %w", strings.Join(s.options.Addr, ","), err)
	}
	s.conn = pool{conn, s.policies}
	return nil
}

func (s *Server) createDatabase(ctx context.Context) error {
	options := *s.options
	options.Auth.Database = ""
	conn, err := clickhouse.Open(&options)
	if err != nil {
		return err
	}
	defer conn.Close()
	return conn.Exec(ctx, "CREATE DATABASE IF NOT EXISTS "+quoteIdentifier(s.Database()))
}

func quoteIdentifier(name string) string {
	return "`" + strings.NewReplacer(`\`, `\\`, "`", "\\`").Replace(name) + "`"
}

// ErrURL says that Config.URL is no address of ClickHouse.
var ErrURL = errors.New("an address of ClickHouse must look like clickhouse://user:password@host:9000/database or " +
	"https://user:password@host:8443/database")

// serverOptions reads the address of a server that runs elsewhere.
func serverOptions(config Config) (*clickhouse.Options, error) {
	u, err := url.Parse(config.URL)
	if err != nil || u.Host == "" {
		return nil, ErrURL // not err, which repeats the password
	}
	switch u.Scheme {
	case "clickhouse", "http":
	case "https":
		query := u.Query()
		query.Set("secure", "true") // the driver wants it said twice
		u.RawQuery = query.Encode()
	default:
		return nil, ErrURL
	}
	options, err := clickhouse.ParseDSN(u.String())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrURL, err)
	}
	if options.Compression == nil {
		options.Compression = &clickhouse.Compression{Method: clickhouse.CompressionLZ4}
	}
	return withPool(options, config), nil
}

// options reaches the embedded engine, wherever it listens at the time.
func (e *engine) options(config Config) *clickhouse.Options {
	return withPool(&clickhouse.Options{
		Protocol:    clickhouse.HTTP,
		Addr:        []string{"embedded-engine"}, // dial replaces it
		DialContext: e.dial,
		Auth:        clickhouse.Auth{Username: dataUser, Password: e.password},
	}, config)
}

// withPool adds the options of every server: the size of the pool, timeouts and the settings of a session.
func withPool(options *clickhouse.Options, config Config) *clickhouse.Options {
	options.MaxOpenConns = Connections(config.Queries)
	options.MaxIdleConns = maxIdleConns
	options.DialTimeout = dialTimeout
	options.ReadTimeout = readTimeout
	if options.Settings == nil {
		options.Settings = clickhouse.Settings{}
	}
	maps.Copy(options.Settings, pinned)
	embedded := options.DialContext != nil
	options.TransportFunc = func(transport *http.Transport) (http.RoundTripper, error) {
		transport.IdleConnTimeout = idleConnTimeout
		if embedded {
			transport.Proxy = nil
		}
		return repeater{Transport: &cost.Transport{Transport: transport}, embedded: embedded}, nil
	}
	return options
}
