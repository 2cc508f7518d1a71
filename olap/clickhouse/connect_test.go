package clickhouse_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runlens/runlens/olap/clickhouse"
	"github.com/runlens/runlens/olap/clickhouse/clickhousetest"
)

// A URL reaches a server that runs elsewhere; its database is made when absent.
func TestServerByURL(t *testing.T) {
	dir := dataDir(t)
	open(t, config(dir))
	password, err := os.ReadFile(filepath.Join(dir, "engine", "password"))
	if err != nil {
		t.Fatal(err)
	}
	url := fmt.Sprintf("http://runlens:%s@%s/other", password, published(t, dir).Addr)
	for _, test := range []struct{ database, want string }{{"", "other"}, {"a`b", "a`b"}} {
		s := open(t, clickhouse.Config{URL: url, Database: test.database})
		if s.Embedded() || s.Database() != test.want {
			t.Errorf("embedded %v, database %q; want false, %q", s.Embedded(), s.Database(), test.want)
		}
		var current string
		if err := s.Conn().QueryRow(context.Background(), "SELECT currentDatabase()").Scan(&current); err != nil ||
			current != test.want {
			t.Errorf("current database %q (%v), want %q", current, err, test.want)
		}
		if version, err := s.Version(context.Background()); err != nil || strings.Count(version, ".") != 3 {
			t.Errorf("version %q (%v)", version, err)
		}
	}
}

func TestFailedConnectionKeepsThePasswordToItself(t *testing.T) {
	for _, url := range []string{
		"http://u:s3cret@127.0.0.1:1/db",
		"https://u:s3cret@127.0.0.1:1/db",
		"clickhouse://u:s3cret@127.0.0.1:1/db",
		"postgres://u:s3cret@127.0.0.1:1/db",
		"u:s3cret@127.0.0.1:1",
		"http://u:s3cret@127.0.0.1:x/db",
		"clickhouse://127.0.0.1:1/db?username=u&password=s3cret&dial_timeout=x",
	} {
		s, err := clickhouse.Open(context.Background(), clickhouse.Config{URL: url})
		if err == nil {
			s.Close()
			t.Errorf("%s: connected", url)
		} else if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: the message repeats the password: %v", url, err)
		}
	}
}

// An address without a ClickHouse is refused in a line, once, that says why.
func TestAddressWithoutClickHouse(t *testing.T) {
	answering := func(status int) string {
		page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "a page", status)
		}))
		t.Cleanup(page.Close)
		return page.URL + "/db"
	}
	impatient, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer impatient.Close()
	native := impatient.Addr().String()
	go func() {
		for {
			conn, err := impatient.Accept()
			if err != nil {
				return
			}
			fmt.Fprint(conn, "HTTP/1.1 400 Bad Request\r\n\r\n")
			conn.(*net.TCPConn).CloseWrite()
		}
	}()
	const refused = "127.0.0.1:1: dial tcp 127.0.0.1:1: connect: connection refused"
	for url, want := range map[string]string{
		"http://127.0.0.1:1/db":        refused,
		"clickhouse://127.0.0.1:1/db":  refused,
		answering(404):                 "what answers is no ClickHouse (HTTP 404)",
		answering(500):                 "what answers is no ClickHouse (HTTP 500)",
		answering(401):                 "what answers does not take this user and password, or is no ClickHouse (HTTP 401)",
		answering(403):                 "what answers does not take this user and password, or is no ClickHouse (HTTP 403)",
		answering(429):                 "a gateway or load balancer answers, and lets no more statements through (HTTP 429)",
		answering(502):                 "a gateway or load balancer answers, and ClickHouse behind it does not (HTTP 502)",
		answering(503):                 "a gateway or load balancer answers, and ClickHouse behind it does not (HTTP 503)",
		answering(504):                 "a gateway or load balancer answers, and ClickHouse behind it does not (HTTP 504)",
		"clickhouse://" + native + "/": "for a port of HTTP the address begins with http:// or https:// ",
	} {
		s, err := clickhouse.Open(context.Background(), clickhouse.Config{URL: url})
		if err == nil {
			s.Close()
			t.Errorf("%s: connected", url)
		} else if got := err.Error(); !strings.Contains(got, want) || len(got) > 300 || strings.Contains(got, "\n") {
			t.Errorf("%s: %s\nwant %s", url, got, want)
		}
	}
}

// The context bounds the opening of a server that is not there.
func TestCancelledOpen(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	c := config(dataDir(t))
	if s, err := clickhouse.Open(ctx, c); err == nil {
		s.Close()
		t.Error("opened with a context that was done")
	}
	open(t, c)
}

// The helper of every other package's tests, on whatever server the environment names.
func TestHelperServerTakesAMigrationHandle(t *testing.T) {
	s := clickhousetest.Open(t)
	db, err := s.DB()
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var name string
	if err := db.QueryRow("SELECT currentDatabase()").Scan(&name); err != nil || name != s.Database() {
		t.Errorf("current database %q (%v), want %q", name, err, s.Database())
	}
}
