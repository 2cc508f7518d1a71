package clickhouse_test

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"
	"sync"
	"testing"

	"github.com/runlens/runlens/olap/clickhouse/clickhousetest"
)

// A balancer is an address behind which nodes take turns.
type balancer struct {
	url func(database string) string
	cut func() // ends all connections
	// between answers requests, or has others sent than it gets; nil for a balancer that passes everything on.
	between func(*http.Request, http.RoundTripper) (*http.Response, error)

	scheme string
	mu     sync.Mutex
	nodes  []*node
	turn   int
	open   map[net.Conn]bool
}

// balancers are what stands between an API and its ClickHouse, by name.
var balancers = map[string]func(*testing.T) *balancer{
	"native":         func(t *testing.T) *balancer { return byConnection(t, "clickhouse", false) },
	"native in TLS":  func(t *testing.T) *balancer { return byConnection(t, "clickhouse", true) },
	"http":           func(t *testing.T) *balancer { return byConnection(t, "http", false) },
	"https":          func(t *testing.T) *balancer { return byConnection(t, "https", true) },
	"http requests":  byRequest,
	"https requests": byRequestInTLS,
}

// behindEach runs a test with each kind of balancer, before which there is no node yet.
func behindEach(t *testing.T, test func(t *testing.T, b *balancer)) {
	for name, start := range balancers {
		t.Run(name, func(t *testing.T) { test(t, start(t)) })
	}
}

// reach makes the nodes take turns from now on.
func (b *balancer) reach(nodes ...*node) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.nodes, b.turn = nodes, 0
}

func (b *balancer) next() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.turn++
	return b.nodes[b.turn%len(b.nodes)].Addr(b.scheme)
}

// turnAway makes the next statement go to the next node: one whose requests take turns does that by itself.
func (b *balancer) turnAway() {
	if b.open != nil {
		b.cut()
	}
}

// cutAll ends the connections of a balancer of connections.
func (b *balancer) cutAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for conn := range b.open {
		conn.Close()
	}
}

// byConnection is byConnectionAt a free port.
func byConnection(t *testing.T, scheme string, secure bool) *balancer {
	t.Helper()
	return byConnectionAt(t, "127.0.0.1:0", scheme, secure)
}

// byConnectionAt starts a balancer of connections, which ends TLS where that is spoken.
func byConnectionAt(t *testing.T, address, scheme string, secure bool) *balancer {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	b := &balancer{scheme: scheme, open: map[net.Conn]bool{}}
	b.cut = b.cutAll
	options := ""
	if addr := listener.Addr().String(); secure {
		certified := httptest.NewUnstartedServer(nil)
		certified.StartTLS()
		listener = tls.NewListener(listener, &tls.Config{Certificates: certified.TLS.Certificates})
		certified.Close()
		options = "?secure=true&skip_verify=true"
		b.url = func(database string) string {
			return scheme + "://" + clickhousetest.NodeUser + "@" + addr + "/" + database + options
		}
	} else {
		b.url = func(database string) string {
			return scheme + "://" + clickhousetest.NodeUser + "@" + addr + "/" + database
		}
	}
	var served sync.WaitGroup
	served.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			served.Go(func() { b.forward(conn) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		b.cut()
		served.Wait()
	})
	return b
}

func (b *balancer) forward(conn net.Conn) {
	defer conn.Close()
	node, err := net.Dial("tcp", b.next())
	if err != nil {
		return
	}
	b.mu.Lock()
	b.open[conn] = true
	b.mu.Unlock()
	var back sync.WaitGroup
	back.Go(func() {
		io.Copy(conn, node)
		conn.Close()
	})
	io.Copy(node, conn)
	node.Close()
	back.Wait()
	b.mu.Lock()
	delete(b.open, conn)
	b.mu.Unlock()
}

func byRequest(t *testing.T) *balancer { return requests(t, (*httptest.Server).Start, "") }

func byRequestInTLS(t *testing.T) *balancer {
	return requests(t, (*httptest.Server).StartTLS, "?skip_verify=true")
}

// requests starts a balancer that reads HTTP: each request goes to the next node.
func requests(t *testing.T, start func(*httptest.Server), options string) *balancer {
	b := &balancer{scheme: "http"}
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "http", b.next() },
		Transport: b,
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// ClickHouse answers before it has read the last chunk of a request. Without this, net/http closes the request's
		// body at the first byte of the answer, and the transport then cuts the answer off.
		if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
			t.Error(err)
		}
		proxy.ServeHTTP(w, r)
	}))
	start(server)
	t.Cleanup(server.Close)
	b.cut = server.CloseClientConnections
	b.url = func(database string) string {
		return strings.Replace(server.URL, "://", "://"+clickhousetest.NodeUser+"@", 1) + "/" + database + options
	}
	return b
}

// RoundTrip sends a request to a node, over a connection of its own: none is left after the test.
func (b *balancer) RoundTrip(r *http.Request) (*http.Response, error) {
	node := &http.Transport{DisableKeepAlives: true}
	if b.between == nil {
		return node.RoundTrip(r)
	}
	return b.between(r, node)
}
