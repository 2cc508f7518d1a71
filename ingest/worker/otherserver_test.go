package worker_test

import (
	"io"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/source/postgres"
	"github.com/runlens/runlens/ingest/worker"
	"github.com/runlens/runlens/olap/olaptest/logtest"
)

// A balancer is an address that stands for several servers: each connection goes to the next one.
type balancer struct {
	net.Listener
	servers []string // host:port
	mu      sync.Mutex
	next    int
	open    []net.Conn
}

// balance listens in front of the servers of some URLs, until the test ends, and returns its own.
func (b *bed) balance(urls ...string) (l *balancer, address string) {
	b.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	l = &balancer{Listener: listener}
	var parsed *url.URL
	for _, u := range urls {
		if parsed, err = url.Parse(u); err != nil {
			b.Fatal(err)
		}
		l.servers = append(l.servers, parsed.Host)
	}
	b.Cleanup(func() { l.Close(); l.cut() })
	go l.serve()
	parsed.Host = l.Addr().String()
	return l, parsed.String()
}

func (l *balancer) serve() {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		l.mu.Lock()
		server, err := net.Dial("tcp", l.servers[l.next%len(l.servers)])
		l.next++
		if err != nil {
			client.Close()
			l.mu.Unlock()
			continue
		}
		l.open = append(l.open, client, server)
		l.mu.Unlock()
		for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
			go func() {
				io.Copy(way[0], way[1])
				way[0].Close()
			}()
		}
	}
}

// cut ends all connections.
func (l *balancer) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, conn := range l.open {
		conn.Close()
	}
	l.open = nil
}

// behind opens a standby of the source, and both under one address. The standby replays nothing until it is told.
func (b *bed) behind() (l *balancer, standby *pgx.Conn) {
	b.Helper()
	replica := b.standby()
	l, address := b.balance(b.server.URL(), replica)
	b.open(address, postgres.DefaultMapping)
	return l, b.connectTo(replica)
}

// What is in flight at one server says nothing of another one's records: nothing is certain that a standby behind the
// same address has yet to replay, whichever of both answers when.
func TestOneAddressOfTwoServers(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.insert("acme", 1, 50)
	l, standby := b.behind()
	log := &logtest.Buffer{}
	status, _ := b.start(func(o *worker.Options) {
		o.Overlap, o.PollInterval = 0, 20*time.Millisecond
		o.Logger = slog.New(slog.NewTextHandler(log, nil))
	})
	b.untilCaughtUp(status, normalize.Kinds...)
	for range 3 { // others use the pool, so that a pass gets now this and now that connection
		go func() {
			for t.Context().Err() == nil {
				b.source.Activity(t.Context())
				time.Sleep(time.Millisecond)
			}
		}()
	}
	primary := b.connect()
	for round := range uint64(4) {
		b.exec(standby, "SELECT pg_wal_replay_pause()")
		b.insert("acme", 51+10*int(round), 10)
		l.cut() // the next connections go elsewhere
		var inserted time.Time
		if err := primary.QueryRow(t.Context(), "SELECT clock_timestamp()").Scan(&inserted); err != nil {
			t.Fatal(err)
		}
		for began := time.Now(); time.Since(began) < 2*time.Second; time.Sleep(20 * time.Millisecond) {
			certain := certainUntil(status)
			if n := b.count(runs); n != 60+10*round && certain.After(inserted) {
				t.Fatalf("round %d: %d runs are stored, certain until %v, and 10 more were inserted before %v", round, n, certain,
					inserted)
			}
		}
		b.exec(standby, "SELECT pg_wal_replay_resume()")
		b.until("all is stored", func() bool { return b.count(runs) == 60+10*round })
	}
	if !strings.Contains(log.String(), "target_session_attrs=primary") {
		t.Errorf("the log does not say that there are two servers: %s", log.String())
	}
}
