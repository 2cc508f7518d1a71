package httpapi_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	httpapi "github.com/runlens/runlens/http"
	"github.com/runlens/runlens/http/conns"
)

// A connection on which nothing was ever sent is closed without a byte when its time is over: a client that keeps it
// for later could take a refusal for the answer to its first request. One that began a request is told.
func TestSilentConnectionsAreToldNothing(t *testing.T) {
	log := &logBuffer{}
	server, err := httpapi.New(httpapi.Config{Logger: slog.New(slog.NewJSONHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	const part = "GET / HTTP/1.1\r\nHo"
	hurried := &hurriedListener{Listener: inner, after: make(chan int, 2)}
	served := make(chan error, 1)
	go func() {
		served <- server.Serve(conns.Limit(hurried, conns.Caps{All: 4, PerAddress: 4}, slog.New(slog.DiscardHandler)))
	}()
	for _, sent := range []string{"", part} {
		hurried.after <- len(sent)
		conn, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, sent); err != nil {
			t.Fatal(err)
		}
		conn.SetDeadline(time.Now().Add(time.Minute))
		answer, err := io.ReadAll(conn)
		if err != nil {
			t.Fatalf("%q: %v", sent, err)
		}
		if told := strings.HasPrefix(string(answer), "HTTP/1.1 400 "); told != (sent != "") {
			t.Errorf("%q was answered with %q", sent, answer)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	if lines := strings.Count(log.String(), `"msg":"request"`); lines != 1 {
		t.Errorf("%d requests are logged of one: %s", lines, log)
	}
}

// A hurriedListener accepts connections whose time is over once so many bytes were read of them.
type hurriedListener struct {
	net.Listener
	after chan int
}

func (l *hurriedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &hurriedConn{Conn: conn, left: <-l.after}, nil
}

type hurriedConn struct {
	net.Conn
	left int
}

func (c *hurriedConn) Read(p []byte) (int, error) {
	if c.left == 0 {
		return 0, os.ErrDeadlineExceeded
	}
	n, err := c.Conn.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}
