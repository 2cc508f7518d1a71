package worker_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/jackc/pgx/v5"

	"github.com/runlens/runlens/ingest"
	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/source/postgres"
	"github.com/runlens/runlens/ingest/source/postgrestest"
	"github.com/runlens/runlens/ingest/verify"
	"github.com/runlens/runlens/ingest/worker"
	"github.com/runlens/runlens/olap/olaptest"
)

// patience bounds the wait for what must happen; nothing depends on how long it takes.
const patience = time.Minute

// A bed is an operational database of the default layout and an empty store.
type bed struct {
	*testing.T
	server   *postgrestest.Server
	source   *postgres.Database
	store    driver.Conn
	mu       sync.Mutex
	rejected []ingest.Reject
	metrics  map[string]float64 // of the last full comparison
}

func newBed(t *testing.T) *bed {
	server := postgrestest.New(t)
	b := &bed{T: t, server: server, store: olaptest.OpenStore(t).Conn()}
	b.do(postgres.Layout)
	// Tests say themselves what updated_at is, as sources with other layouts do.
	b.do(
		"ALTER TABLE agents DISABLE TRIGGER USER; ALTER TABLE runs DISABLE TRIGGER USER; ALTER TABLE attributions DISABLE " +
			"TRIGGER USER",
	)
	b.open(server.URL(), postgres.DefaultMapping)
	return b
}

// open makes the worker's connection to the source.
func (b *bed) open(url, mapping string) {
	b.Helper()
	m, err := postgres.ParseMapping(mapping)
	if err != nil {
		b.Fatal(err)
	}
	if b.source, err = postgres.Open(context.Background(), url, m); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(b.source.Close)
}

// reopen makes the worker's connection that of a role which may read the tables and nothing else.
func (b *bed) reopen(role string) {
	b.Helper()
	b.do("CREATE ROLE " + role + " LOGIN PASSWORD 'secret'; GRANT SELECT ON ALL TABLES IN SCHEMA public TO " + role)
	b.Cleanup(func() { b.do("DROP OWNED BY " + role + "; DROP ROLE " + role) })
	address, err := url.Parse(b.server.URL())
	if err != nil {
		b.Fatal(err)
	}
	address.User = url.UserPassword(role, "secret")
	b.open(address.String(), postgres.DefaultMapping)
}

func (b *bed) sourceCount(query string) (n uint64) {
	b.Helper()
	if err := b.connect().QueryRow(context.Background(), query).Scan(&n); err != nil {
		b.Fatal(err)
	}
	return n
}

func (b *bed) setting(name string) (value string) {
	b.Helper()
	if err := b.connect().QueryRow(context.Background(), "SELECT current_setting($1)", name).Scan(&value); err != nil {
		b.Fatal(err)
	}
	return value
}

func (b *bed) connect() *pgx.Conn {
	b.Helper()
	return b.connectTo(b.server.URL())
}

func (b *bed) connectTo(url string) *pgx.Conn {
	b.Helper()
	conn, err := pgx.Connect(context.Background(), url)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

// do executes statements at the source.
func (b *bed) do(sql string) {
	b.Helper()
	conn := b.connect()
	defer conn.Close(context.Background())
	if _, err := conn.Exec(context.Background(), sql); err != nil {
		b.Fatal(err)
	}
}

// insert adds n of each kind of records to an organization, numbered from first.
func (b *bed) insert(organization string, first, n int) {
	b.Helper()
	b.do(fmt.Sprintf(`
		INSERT INTO agents SELECT '%[1]s', lpad(to_hex(g), 32, '0')::uuid, 'Agent ' || g, NULL, NULL
			FROM generate_series(%[2]d, %[3]d) g;
		INSERT INTO runs (organization_id, run_id, agent_id, status, initiator_identifier, created_at)
			SELECT '%[1]s', lpad(to_hex(g), 32, '0')::uuid,
				lpad(to_hex(g %% 7), 32, '0')::uuid, 'RUNNING', 'Person' || g %% 5 || '@Example.com',
				'2026-01-01T00:00:00Z'::timestamptz + g * interval '1 hour' FROM generate_series(%[2]d, %[3]d) g;
		INSERT INTO attributions (organization_id, attribution_id, run_id, agent_id,
			user_identifier, activity_type, run_initiation_type, source, occurred_at)
			SELECT '%[1]s', lpad(to_hex(g), 32, '0')::uuid, lpad(to_hex(g), 32, '0')::uuid,
				lpad(to_hex(g %% 7), 32, '0')::uuid, '+1555010' || g %% 9,
				'interacted', 'human', 'web', '2026-01-01T00:00:00Z'::timestamptz + g * interval '1 hour'
					FROM generate_series(%[2]d, %[3]d) g`,
		organization, first, first+n-1))
}

// start runs a worker until the test ends or stop is called.
func (b *bed) start(change func(*worker.Options)) (status *worker.Status, stop func()) {
	b.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	options := b.options(change)
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx, options) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil {
				b.Errorf("the worker ended: %v", err)
			}
		})
	}
	b.Cleanup(stop)
	return options.Status, stop
}

// options are those of a worker of the bed.
func (b *bed) options(change func(*worker.Options)) worker.Options {
	options := worker.Options{
		Source: b.source, Name: "test", Conn: b.store, Logger: slog.New(slog.DiscardHandler),
		Status:       worker.NewStatus(time.Now),
		PollInterval: 200 * time.Millisecond, Overlap: time.Second,
		OnReject: func(r ingest.Reject) error {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.rejected = append(b.rejected, r)
			return nil
		},
	}
	if change != nil {
		change(&options)
	}
	return options
}

// until waits for a condition, which it asks ever more rarely.
func (b *bed) until(what string, condition func() bool) {
	b.Helper()
	for began := time.Now(); !condition(); time.Sleep(max(100*time.Millisecond, time.Since(began)/10)) {
		if time.Since(began) > patience {
			b.Fatalf("still not: %s", what)
		}
	}
}

func (b *bed) differences() []verify.Difference {
	b.Helper()
	report, err := verify.Compare(context.Background(),
		verify.Options{Source: verify.Postgres{Database: b.source}, Conn: b.store, MaxIDs: 5})
	if err != nil {
		b.Fatal(err)
	}
	return report.Differences
}

func (b *bed) untilEqual() {
	b.Helper()
	b.until("store and source are equal", func() bool { return len(b.differences()) == 0 })
}

// untilCaughtUp waits until a worker has copied what its source has of some kinds, and has saved checkpoints of it.
func (b *bed) untilCaughtUp(status *worker.Status, kinds ...normalize.Kind) {
	b.Helper()
	b.until("caught up", func() bool {
		report := status.Report()
		return !slices.ContainsFunc(kinds, func(k normalize.Kind) bool { return !report.Kinds[k].CaughtUp })
	})
}

// copied has a worker copy the source, and stops it: not as soon as store and source are equal, since the next worker
// reads again what no checkpoint has.
func (b *bed) copied() {
	b.Helper()
	status, stop := b.start(nil)
	b.untilCaughtUp(status, normalize.Kinds...)
	b.untilEqual()
	stop()
}

func (b *bed) count(query string) (n uint64) {
	b.Helper()
	if err := b.store.QueryRow(context.Background(), query).Scan(&n); err != nil {
		b.Fatal(err)
	}
	return n
}
