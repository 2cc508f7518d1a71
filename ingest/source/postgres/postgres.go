// Package postgres reads records from a PostgreSQL operational database: all of them, those of one
// day, those of some ids, or those that changed since a key.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/olap/silence"
)

const (
	// maxConns serves the polling of every kind and a reconcile.
	maxConns = 4
	// connectTimeout bounds one attempt to connect where the URL has no connect_timeout.
	connectTimeout = 10 * time.Second
	// maxSilence is how long a host may take nothing that is sent to it. Statements are short, so that one which is there
	// always takes them.
	maxSilence = time.Minute
	// applicationName is what PostgreSQL shows of a connection.
	applicationName = "runlens"
)

// A Database is an operational database. It is safe for concurrent use.
type Database struct {
	pool    *pgxpool.Pool
	lookup  pgconn.LookupFunc
	mapping Mapping
	primary atomic.Bool // a server that takes writes has answered

	mu         sync.Mutex
	own        map[string]bool                  // names of the transactions in which this process reads now
	identities map[normalize.Kind]identityTypes // as Check found
	columns    map[normalize.Kind][]column      // which Check judged last
	policed    map[normalize.Kind]bool          // policies of row-level security let the role read all rows
}

// Open connects to the database of a postgres:// URL, directly or through a pooler that gives a
// connection away after each transaction. Errors carry no password.
func Open(ctx context.Context, url string, mapping Mapping) (*Database, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, errors.New("the source must look like postgres://user@host:5432/database")
	}
	config.MaxConns = maxConns
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = connectTimeout
	}
	config.ConnConfig.RuntimeParams["application_name"] = applicationName
	// What the driver needs, whatever the encoding of the database and its settings are.
	config.ConnConfig.RuntimeParams["client_encoding"] = "UTF8"
	config.ConnConfig.RuntimeParams["standard_conforming_strings"] = "on"
	config.ConnConfig.RuntimeParams["datestyle"] = "ISO"
	delete(config.ConnConfig.RuntimeParams, "timezone") // of PGTZ, which would hide that of the database
	// A pooler gives each transaction any connection, so nothing may rest on the connection: no prepared
	// statement, and no setting outside a transaction. Arguments are quoted into the statement, where
	// PostgreSQL takes their types from the columns that they are compared with.
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	var password atomic.Pointer[string]
	password.Store(&config.ConnConfig.Password)
	config.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
		// PGPASSFILE may have another password by now, and the driver read it once. While it is written it may have none.
		if now, err := pgxpool.ParseConfig(url); err == nil && now.ConnConfig.Password != "" {
			password.Store(&now.ConnConfig.Password)
		}
		c.Password = *password.Load()
		return nil
	}
	config.ConnConfig.DialFunc = (&net.Dialer{Control: silence.End(maxSilence)}).DialContext
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	return &Database{
		pool: pool, lookup: config.ConnConfig.LookupFunc, mapping: mapping,
		own: map[string]bool{}, identities: map[normalize.Kind]identityTypes{}, columns: map[normalize.Kind][]column{},
		policed: map[normalize.Kind]bool{},
	}, nil
}

// several reports whether connections may go to different servers: those that the address lists, or those of a name
// that has more than one address of a family. The one that takes writes is one server. That nobody answers for a name
// is said by whoever connects.
func (d *Database) several(ctx context.Context) bool {
	c := d.pool.Config().ConnConfig
	if onlyPrimary(c) {
		return false
	}
	for _, f := range c.Fallbacks {
		if f.Host != c.Host || f.Port != c.Port {
			return true
		}
	}
	addresses, _ := d.lookup(ctx, c.Host)
	families := map[bool]int{}
	for _, address := range addresses {
		families[strings.Contains(address, ":")]++
	}
	return families[false] > 1 || families[true] > 1
}

// onlyPrimary reports whether the driver takes the server that takes writes and no other, wherever
// target_session_attrs was given.
func onlyPrimary(c *pgx.ConnConfig) bool {
	check := reflect.ValueOf(c.ValidateConnect).Pointer()
	return check == reflect.ValueOf(pgconn.ValidateConnectTargetSessionAttrsReadWrite).Pointer() ||
		check == reflect.ValueOf(pgconn.ValidateConnectTargetSessionAttrsPrimary).Pointer()
}

// Name names the database by its address, without what may change about it: user and password.
func (d *Database) Name() string {
	c := d.pool.Config().ConnConfig
	return fmt.Sprintf("%s:%d/%s", c.Host, c.Port, c.Database)
}

// Mapping returns how the database is read.
func (d *Database) Mapping() Mapping { return d.mapping }

// Close closes all connections.
func (d *Database) Close() { d.pool.Close() }

// Check compares the mapping with the database: every SELECT must run and have the columns it needs, and no others.
// What reads after it notices when they have other types (unchanged).
func (d *Database) Check(ctx context.Context) error {
	if err := d.checkEncoding(ctx); err != nil {
		return err
	}
	for _, kind := range normalize.Kinds {
		var columns []pgconn.FieldDescription
		var types identityTypes
		err := d.readingAny(ctx, kind, func(tx pgx.Tx) (err error) {
			if columns, err = d.describe(ctx, tx, kind); err == nil {
				types, err = identityOf(ctx, tx, kind, columns)
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("the SELECT of record %s: %w", kind, err)
		}
		if err := checkColumns(kind, columns); err != nil {
			return err
		}
		if err := d.checkTypes(ctx, kind, columns); err != nil {
			return err
		}
		d.mu.Lock()
		d.identities[kind], d.columns[kind] = types, typesOf(columns)
		d.mu.Unlock()
	}
	return nil
}

// from is the mapping's SELECT as a table s. It may end with a comment.
func (d *Database) from(kind normalize.Kind) string { return "(" + d.mapping[kind] + "\n) AS s" }

// reading runs read in a transaction that cannot write and takes a timestamp without a zone for UTC.
// Its settings, more of which may be given as columns of a SELECT, end with it. Where row-level security would leave
// out rows of the kind it fails; the kind is empty where only PostgreSQL's own tables are read.
func (d *Database) reading(
	ctx context.Context, kind normalize.Kind, settings string, read func(pgx.Tx) error,
) error {
	if !d.isPoliced(kind) {
		return d.transact(ctx, strict+settings, read)
	}
	return d.transact(ctx, settings, func(tx pgx.Tx) error {
		if err := read(tx); err != nil {
			return err
		}
		return d.sawAll(ctx, tx, kind)
	})
}

// transact is reading whatever row-level security hides.
func (d *Database) transact(ctx context.Context, settings string, read func(pgx.Tx) error) error {
	// Whatever the default of the role is: one that is serializable would make transactions of others fail, and waits
	// where it is deferrable.
	tx, err := d.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadOnly})
	if err != nil {
		return beginFailed(err)
	}
	defer tx.Rollback(ctx) // has no effect after a commit
	var pid int64
	var began, started time.Time
	var standby bool
	if err := tx.QueryRow(ctx, "SELECT pid, began, started, standby FROM (SELECT pg_backend_pid()::bigint AS pid, "+
		"now() AS began, pg_postmaster_start_time() AS started, pg_is_in_recovery() AS standby"+readSettings+settings+
		") AS s").Scan(&pid, &began, &started, &standby); err != nil {
		return err
	}
	if err := d.checkServer(ctx, started, standby); err != nil {
		tx.Conn().Close(ctx) // the next one may reach the server
		return err
	}
	name := sessionName(pid, began)
	d.mu.Lock()
	d.own[name] = true
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		delete(d.own, name)
		d.mu.Unlock()
	}()
	if err := read(tx); err != nil {
		return err
	}
	return tx.Commit(ctx)
}
