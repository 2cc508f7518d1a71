package conns_test

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlens/runlens/http/conns"
)

// A plainListener hands out what a test puts in: connections, and errors of accept.
type plainListener struct {
	next   chan any
	closed chan struct{}
	once   sync.Once
}

func newPlainListener() *plainListener {
	return &plainListener{next: make(chan any, 100), closed: make(chan struct{})}
}

func (l *plainListener) Accept() (net.Conn, error) {
	select {
	case next := <-l.next:
		if err, ok := next.(error); ok {
			return nil, err
		}
		return next.(net.Conn), nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *plainListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *plainListener) Addr() net.Addr { return &net.TCPAddr{} }

// An endpoint is a connection from an address.
type endpoint struct {
	net.Conn
	address string
}

func (e endpoint) RemoteAddr() net.Addr {
	address, err := net.ResolveTCPAddr("tcp", e.address)
	if err != nil {
		panic(err)
	}
	return address
}

// dial makes a connection from an address and returns the client's side.
func (l *plainListener) dial(address string) net.Conn {
	client, server := net.Pipe()
	l.next <- endpoint{server, address}
	return client
}

// ended reports whether the other side closed a connection.
func ended(c net.Conn) bool {
	c.SetReadDeadline(time.Now().Add(time.Millisecond))
	_, err := c.Read(make([]byte, 1))
	return errors.Is(err, io.EOF)
}

func accept(t *testing.T, l net.Listener) net.Conn {
	t.Helper()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func limit(inner net.Listener, all, perAddress int) (*conns.Listener, *strings.Builder) {
	var log strings.Builder
	return conns.Limit(inner, conns.Caps{All: all, PerAddress: perAddress}, slog.New(slog.NewTextHandler(&log, nil))), &log
}

// Out of descriptors is no reason to stop: accept goes on, and says so once.
func TestAcceptGoesOnAfterErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := newPlainListener()
		l, log := limit(inner, 10, 10)
		client := inner.dial("192.0.2.1:1")
		accept(t, l)
		for range 5 {
			inner.next <- &net.OpError{Op: "accept", Err: syscall.EMFILE}
		}
		inner.dial("192.0.2.1:2")
		accept(t, l)
		if !ended(client) {
			t.Error("no idle connection gave its descriptor back")
		}
		if n := strings.Count(log.String(), "could not be accepted"); n != 1 {
			t.Errorf("%d lines in the log, want 1:\n%s", n, log)
		}
		l.Close()
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}

// The longest idle connection makes space, of the address itself where that is full; a busy one never does.
func TestIdleConnectionsMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := newPlainListener()
		l, _ := limit(inner, 4, 2)
		send := func(client, server net.Conn) {
			go client.Write([]byte("x"))
			if _, err := server.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
		}
		busy := inner.dial("192.0.2.1:1")
		send(busy, accept(t, l))
		idle := inner.dial("192.0.2.1:2")
		accept(t, l)
		<-time.After(time.Second) // of the bubble's clock
		other := inner.dial("[2001:db8::1]:1")
		accept(t, l)

		third := inner.dial("192.0.2.1:3")
		send(third, accept(t, l))
		if ended(busy) || !ended(idle) {
			t.Error("not the idle connection of the address made space")
		}
		inner.dial("192.0.2.1:4") // both of its address are busy
		inner.dial("[2001:db8::2]:1")
		accept(t, l)
		if got := l.Refused(conns.CapPerAddress); got != 1 || l.Open() != 4 {
			t.Errorf("%d refused, %d open; want 1 and 4", got, l.Open())
		}
		inner.dial("192.0.2.3:1") // takes the place of the longest idle one of all
		accept(t, l)
		if !ended(other) || ended(third) || l.Open() != 4 {
			t.Error("not the longest idle connection of all made space")
		}
		inner.dial("[2001:db8::3]:1") // counts with the other of its network, which is idle
		accept(t, l)
		if l.Open() != 4 || l.Refused(conns.CapAll) != 0 {
			t.Errorf("%d open, %d refused", l.Open(), l.Refused(conns.CapAll))
		}
	})
}

// From its first byte on, a request has the grace and the time that its bytes take at the least rate. Waiting for the
// first byte is the server's own business.
func TestSlowSendersAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := newPlainListener()
		l, _ := limit(inner, 10, 10)
		client := inner.dial("192.0.2.1:1")
		server := accept(t, l)
		wait := func(send int) time.Duration {
			go client.Write(make([]byte, send))
			if _, err := io.ReadFull(server, make([]byte, send)); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			_, err := server.Read(make([]byte, 1))
			if failed, ok := err.(net.Error); !ok || !failed.Timeout() {
				t.Fatal(err)
			}
			return time.Since(began)
		}
		if got := wait(1); got.Round(time.Millisecond) != conns.Grace {
			t.Errorf("after a byte it waited %v, want %v", got, conns.Grace)
		}
		// An answer ends the request; the next one may take its time to come, and has a grace of its own.
		go client.Read(make([]byte, 1))
		if _, err := server.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Hour) // of the bubble's clock
		if got, want := wait(3*conns.MinBytesPerSecond), conns.Grace+3*time.Second; got.Round(time.Millisecond) != want {
			t.Errorf("after three seconds' worth of bytes it waited %v, want %v", got, want)
		}
	})
}

// A client that does not take its answer keeps the connection no longer than one that does not send.
func TestSlowReadersAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := newPlainListener()
		l, _ := limit(inner, 10, 10)
		inner.dial("192.0.2.1:1")
		server := accept(t, l)
		server.SetWriteDeadline(time.Now().Add(time.Hour))
		began := time.Now()
		_, err := server.Write(make([]byte, 2*conns.MinBytesPerSecond))
		if failed, ok := err.(net.Error); !ok || !failed.Timeout() {
			t.Fatal(err)
		}
		if got, want := time.Since(began), conns.Grace+2*time.Second; got != want {
			t.Errorf("it waited %v, want %v", got, want)
		}
	})
}

// A client that is still sending when its answer comes has that answer, and not a reset.
func TestUnreadConnectionsAreDrained(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l, _ := limit(inner, 10, 10)
	defer l.Close()
	const sent = 8 << 20
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	writing := make(chan error, 1)
	go func() {
		_, err := client.Write(make([]byte, sent))
		writing <- err
	}()
	server := accept(t, l)
	if _, err := io.ReadFull(server, make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Write([]byte("answer")); err != nil {
		t.Fatal(err)
	}
	conns.LeaveUnread(server)
	server.Close()
	if err := <-writing; err != nil {
		t.Errorf("the client could not send the rest: %v", err)
	}
	if answer, err := io.ReadAll(client); err != nil || string(answer) != "answer" {
		t.Errorf("the client read %q, %v", answer, err)
	}
	client.Close()
	for deadline := time.Now().Add(10 * time.Second); l.Open() > 0; {
		if time.Now().After(deadline) {
			t.Fatal("the connection still counts")
		}
		<-time.After(time.Millisecond)
	}
}
