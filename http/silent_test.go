package httpapi_test

import (
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	fiberlog "github.com/gofiber/fiber/v2/log"

	httpapi "github.com/runlens/runlens/http"
	"github.com/runlens/runlens/olap/olaptest/logtest"
)

// A connection on which nothing was ever sent is closed without a byte when its time is over: a client that keeps it
// for later could take a refusal for the answer to its first request. One that began a request is told.
func TestSilentConnectionsAreToldNothing(t *testing.T) {
	log, fibers := &logtest.Buffer{}, &logtest.Buffer{}
	fiberlog.SetOutput(fibers)
	defer fiberlog.SetOutput(os.Stderr)
	server, err := httpapi.New(httpapi.Config{Logger: slog.New(slog.NewJSONHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	const part = "GET / HTTP/1.1\r\nHo"
	hurried := &hurriedListener{Listener: inner, next: make(chan hurriedConn, 1)}
	stop := answering(t, server, hurried)
	for _, c := range []struct {
		sent      string
		displaced bool // closed on this side, to make room for another one
	}{{"", false}, {"", true}, {part, false}} {
		hurried.next <- hurriedConn{left: len(c.sent), displaced: c.displaced}
		conn, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, c.sent); err != nil {
			t.Fatal(err)
		}
		conn.SetDeadline(time.Now().Add(time.Minute))
		answer, err := io.ReadAll(conn)
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		if told := strings.HasPrefix(string(answer), "HTTP/1.1 400 "); told != (c.sent != "") {
			t.Errorf("%+v was answered with %q", c, answer)
		}
	}
	stop()
	if lines := strings.Count(log.String(), `"msg":"request"`); lines != 1 {
		t.Errorf("%d requests are logged of one: %s", lines, log)
	}
	if fibers.String() != "" {
		t.Errorf("Fiber logs %s", fibers)
	}
}

// A hurriedListener accepts connections whose time is over once so many bytes were read of them.
type hurriedListener struct {
	net.Listener
	next chan hurriedConn
}

func (l *hurriedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	hurried := <-l.next
	hurried.Conn = conn
	return &hurried, nil
}

type hurriedConn struct {
	net.Conn
	left      int
	displaced bool
}

func (c *hurriedConn) Read(p []byte) (int, error) {
	if c.displaced {
		c.Conn.Close()
		return 0, net.ErrClosed
	}
	if c.left == 0 {
		return 0, os.ErrDeadlineExceeded
	}
	n, err := c.Conn.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}
