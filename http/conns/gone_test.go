package conns_test

import (
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/runlens/runlens/http/conns"
)

// A peer that closes or resets its connection is gone, whatever it sent before; one that waits is not, and loses
// nothing by being checked.
func TestGone(t *testing.T) {
	certified := httptest.NewUnstartedServer(http.NotFoundHandler())
	certified.StartTLS()
	defer certified.Close()
	trusting := certified.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	trusting.ServerName = "example.com"
	for name, c := range map[string]struct {
		server func(net.Conn) net.Conn
		client func(net.Conn) net.Conn
		sent   string
		leave  func(t *testing.T, client net.Conn)
	}{
		"closes":                   {leave: closes},
		"closes with bytes unread": {sent: "another request", leave: closes},
		"resets": {leave: func(t *testing.T, client net.Conn) {
			if err := client.(*net.TCPConn).SetLinger(0); err != nil {
				t.Error(err)
			}
			closes(t, client)
		}},
		"closes TLS": {
			server: func(c net.Conn) net.Conn { return tls.Server(c, certified.TLS) },
			client: func(c net.Conn) net.Conn { return tls.Client(c, trusting) },
			leave:  closes,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inner, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			l := conns.Limit(inner, conns.Caps{All: 10, PerAddress: 10}, slog.New(slog.DiscardHandler))
			defer l.Close()
			client, err := net.Dial("tcp", inner.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			server := accept(t, l)
			defer server.Close()
			if c.server != nil {
				server, client = c.server(server), c.client(client)
			}
			read := make(chan error, 1)
			go func() {
				_, err := io.ReadFull(server, make([]byte, 5))
				read <- err
			}()
			if _, err := client.Write([]byte("hello")); err != nil {
				t.Fatal(err)
			}
			if err := <-read; err != nil {
				t.Fatal(err)
			}
			if _, err := client.Write([]byte(c.sent)); err != nil {
				t.Fatal(err)
			}
			if conns.Gone(server) {
				t.Error("a client that waits is gone")
			}
			if c.sent != "" {
				seen := make([]byte, len(c.sent))
				if _, err := io.ReadFull(server, seen); err != nil || string(seen) != c.sent {
					t.Errorf("read %q, %v", seen, err)
				}
				if _, err := client.Write([]byte(c.sent)); err != nil {
					t.Fatal(err)
				}
			}
			c.leave(t, client)
			for deadline := time.Now().Add(20 * time.Second); !conns.Gone(server); time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("a client that went away is not gone")
				}
			}
		})
	}
}

func closes(t *testing.T, client net.Conn) {
	if err := client.Close(); err != nil {
		t.Error(err)
	}
}

// What has no socket is never gone.
func TestGoneWithoutASocket(t *testing.T) {
	client, server := net.Pipe()
	client.Close()
	if conns.Gone(server) {
		t.Error("a pipe is gone")
	}
}
