package conns_test

import (
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// A deadline ends a Read that has begun: servers end connections so.
func TestDeadlinesEndReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := newPlainListener()
		l, _ := limit(inner, 1, 1)
		server := open(t, inner, l, "192.0.2.1:1").server
		ended := make(chan error, 1)
		go func() {
			_, err := server.Read(make([]byte, 1))
			ended <- err
		}()
		synctest.Wait()
		server.SetReadDeadline(time.Now())
		if err, ok := (<-ended).(net.Error); !ok || !err.Timeout() {
			t.Error(err)
		}
	})
}

// Whoever serves a connection that made room learns of it by a Read or a Write: fasthttp ends the process if a deadline
// cannot be set.
func TestDeadlinesOfClosedConnections(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l, _ := limit(inner, 1, 1)
	defer l.Close()
	var served []net.Conn
	for range 2 {
		client, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		served = append(served, accept(t, l))
	}
	later := time.Now().Add(time.Minute)
	if _, err := served[0].Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("reading: %v", err)
	}
	for name, set := range map[string]func(time.Time) error{"both": served[0].SetDeadline,
		"read": served[0].SetReadDeadline, "write": served[0].SetWriteDeadline} {
		if err := set(later); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// When nobody listens any more, a connection without a request has a second to begin one, whatever deadline the server
// sets it. One that has begun goes on.
func TestUnusedConnectionsEndWithTheListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := newPlainListener()
		l, _ := limit(inner, 3, 3)
		unused, late, begun := open(t, inner, l, "192.0.2.1:1"), open(t, inner, l, "192.0.2.1:2"), open(t, inner, l,
			"192.0.2.1:3")
		for _, c := range []pair{unused, late, begun} {
			c.server.SetReadDeadline(time.Now().Add(time.Hour))
		}
		go begun.client.Write([]byte("G"))
		if _, err := begun.server.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		read := func(c pair) {
			go func() {
				_, err := c.server.Read(make([]byte, 1))
				ended <- err
			}()
			synctest.Wait()
		}
		closed := time.Now()
		read(unused)
		l.Close()
		if err, ok := (<-ended).(net.Error); !ok || !err.Timeout() || time.Since(closed) != time.Second {
			t.Errorf("unused: %v after %v", err, time.Since(closed))
		}
		late.server.SetReadDeadline(time.Now().Add(time.Hour))
		read(late)
		if err, ok := (<-ended).(net.Error); !ok || !err.Timeout() || time.Since(closed) != time.Second {
			t.Errorf("late: %v after %v", err, time.Since(closed))
		}
		read(begun)
		time.Sleep(2 * time.Second) // of the test's clock
		go begun.client.Write([]byte("E"))
		if err := <-ended; err != nil {
			t.Errorf("begun: %v after %v", err, time.Since(closed))
		}
	})
}
