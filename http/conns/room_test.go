package conns_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlens/runlens/http/conns"
)

// A pair is both sides of a connection that a Listener accepted.
type pair struct{ client, server net.Conn }

// open makes an idle connection from an address.
func open(t *testing.T, inner *plainListener, l net.Listener, address string) pair {
	t.Helper()
	client := inner.dial(address)
	t.Cleanup(func() { client.Close() })
	return pair{client, accept(t, l)}
}

// trickle leaves half a request on a connection, which the server waits for.
func (p pair) trickle() pair {
	go io.Copy(io.Discard, p.server)
	go p.client.Write([]byte("x"))
	synctest.Wait()
	return p
}

// later makes what was before older than what comes.
func later() { <-time.After(time.Millisecond) } // of the bubble's clock

// Whoever holds most gives a place up, though all of its connections are busy, and whoever holds few keeps what it has,
// though all of its connections are idle.
func TestTheFullestAddressMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := newPlainListener()
		l, log := limit(inner, 8, 4)
		defer l.Close()
		var flood []pair
		for i := range 8 {
			later()
			flood = append(flood, open(t, inner, l, fmt.Sprintf("192.0.2.%d:%d", 1+i%2, i)).trickle())
		}
		honest := open(t, inner, l, "198.51.100.1:1")
		if !ended(flood[0].client) || l.Open() != 8 {
			t.Errorf("the oldest request of the flood has its place still, %d are open", l.Open())
		}
		for i := range 100 { // the flood goes on
			later()
			open(t, inner, l, fmt.Sprintf("192.0.2.%d:%d", 1+i%2, 100+i)).trickle()
		}
		second := open(t, inner, l, "198.51.100.1:2")
		if ended(honest.client) || ended(second.client) || l.Open() != 8 {
			t.Errorf("the flood has taken a place of another address, %d are open", l.Open())
		}
		if n := l.Refused(conns.CapAll) + l.Refused(conns.CapPerAddress); n != 0 || l.Displaced() != 102 {
			t.Errorf("%d were refused, %d displaced; want 0 and 102", n, l.Displaced())
		}
		if log.Len() != 0 {
			t.Error(log)
		}
	})
}

// From ever so many addresses with a connection each, a flood displaces itself.
func TestACrowdOfAddressesDisplacesItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := newPlainListener()
		l, _ := limit(inner, 8, 4)
		defer l.Close()
		for i := range 8 {
			later()
			open(t, inner, l, fmt.Sprintf("192.0.2.%d:1", i)).trickle()
		}
		honest := open(t, inner, l, "198.51.100.1:1")
		conns.Authenticated(honest.server, true)
		for i := range 100 {
			later()
			open(t, inner, l, fmt.Sprintf("203.0.113.%d:1", i)).trickle()
		}
		if ended(honest.client) || l.Open() != 8 {
			t.Errorf("the crowd has displaced a client with a key, %d are open", l.Open())
		}
	})
}

// The connections of clients with a key are no stranger's, idle or not. Their own address may have them, the longest
// idle one first and only once there is no other.
func TestAuthenticatedConnectionsStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := newPlainListener()
		l, _ := limit(inner, 4, 3)
		defer l.Close()
		var held []pair
		for i := range 4 {
			later()
			held = append(held, open(t, inner, l, fmt.Sprintf("192.0.2.%d:%d", 1+i/3, i)))
			conns.Authenticated(held[i].server, true)
		}
		held[0].trickle()
		inner.dial("198.51.100.1:1")
		own := open(t, inner, l, "192.0.2.1:9")
		if got := l.Refused(conns.CapAll); got != 1 {
			t.Errorf("%d strangers were refused, want 1", got)
		}
		for i, p := range held {
			if ended(p.client) != (i == 1) {
				t.Errorf("connection %d ended: %t", i, i != 1)
			}
		}
		// One that has no valid key any more is like any other.
		conns.Authenticated(held[2].server, false)
		later()
		open(t, inner, l, "198.51.100.1:2")
		if !ended(held[2].client) && !ended(own.client) || l.Refused(conns.CapAll) != 1 {
			t.Error("a connection without a key kept its place")
		}
	})
}

// One address may hold many places while there are enough for all, and no more once half of them are taken.
func TestALoneAddressMayHoldMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := newPlainListener()
		l := conns.Limit(inner, conns.Caps{All: 12, PerAddress: 6, Crowded: 2}, slog.New(slog.DiscardHandler))
		defer l.Close()
		var held []pair
		for i := range 6 {
			later()
			held = append(held, open(t, inner, l, fmt.Sprintf("192.0.2.1:%d", i)))
		}
		for i := range 4 { // the first two of another address fit, the others displace each other
			later()
			open(t, inner, l, fmt.Sprintf("192.0.2.2:%d", i))
		}
		if l.Open() != 8 || l.Displaced() != 2 {
			t.Errorf("%d open, %d displaced, want 8 and 2", l.Open(), l.Displaced())
		}
		later()
		open(t, inner, l, "192.0.2.1:9")
		for i, p := range held {
			if ended(p.client) != (i == 0) {
				t.Errorf("connection %d ended: %t", i, i != 0)
			}
		}
	})
}

// What is being answered is nobody's of the same address.
func TestAnswersAreNotCutOffByTheirOwnAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := newPlainListener()
		l, _ := limit(inner, 8, 1)
		defer l.Close()
		working := open(t, inner, l, "192.0.2.1:1")
		go working.client.Write([]byte("x"))
		if _, err := working.server.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		inner.dial("192.0.2.1:2")
		open(t, inner, l, "192.0.2.2:1")
		if ended(working.client) || l.Refused(conns.CapPerAddress) != 1 {
			t.Errorf("an answer was cut off, or %d refused, want 1", l.Refused(conns.CapPerAddress))
		}
	})
}

// Nobody makes room for an address that holds as much or more.
func TestTheFullestAddressTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := newPlainListener()
		l, _ := limit(inner, 4, 4)
		defer l.Close()
		few := []pair{open(t, inner, l, "192.0.2.1:1"), open(t, inner, l, "192.0.2.1:2")}
		for i := range 2 {
			p := open(t, inner, l, fmt.Sprintf("192.0.2.2:%d", i))
			conns.Authenticated(p.server, true)
			p.trickle()
		}
		inner.dial("192.0.2.2:9")
		open(t, inner, l, "192.0.2.3:1")
		if ended(few[0].client) == ended(few[1].client) || l.Refused(conns.CapAll) != 1 {
			t.Errorf("%d were refused, want 1; an address that holds none takes one place of that with two",
				l.Refused(conns.CapAll))
		}
	})
}

// A proxy has as many connections as there are places, and each counts as if it were of an address of its own. All
// that is known of a TLS connection is known of what is beneath it.
func TestProxiesAreExempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := newPlainListener()
		l := conns.Limit(inner, conns.Caps{All: 6, PerAddress: 2,
			Exempt: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}},
			slog.New(slog.DiscardHandler))
		defer l.Close()
		var proxied []pair
		for i := range 4 {
			later()
			proxied = append(proxied, open(t, inner, l, fmt.Sprintf("10.1.1.1:%d", i)))
		}
		conns.Authenticated(tls.Server(proxied[0].server, &tls.Config{}), true)
		var strangers []pair
		for i := range 2 {
			later()
			strangers = append(strangers, open(t, inner, l, fmt.Sprintf("192.0.2.1:%d", i)).trickle())
		}
		open(t, inner, l, "10.1.1.1:9")
		if !ended(strangers[0].client) || ended(proxied[0].client) || ended(proxied[1].client) {
			t.Error("not the address that holds most made room for the proxy")
		}
		open(t, inner, l, "10.1.1.1:10") // all hold one place: the longest idle one without a key
		if ended(proxied[0].client) || !ended(proxied[1].client) || l.Refused(conns.CapPerAddress) != 0 {
			t.Error("not the longest idle connection without a key made room")
		}
	})
}

// A server of net/http reads ahead while a handler works, for longer than a request may take to arrive, and ends
// requests that do not arrive.
func TestServersOfNetHTTP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := newPlainListener()
		l, _ := limit(inner, 1, 1)
		cut := make(chan error, 2)
		server := conns.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			select {
			case <-r.Context().Done():
			case <-time.After(2 * time.Minute): // of the bubble's clock
			}
			w.(http.Flusher).Flush()
			inner.dial("192.0.2.1:2") // finds the only place taken by an answer
			<-time.After(time.Minute)
			cut <- context.Cause(r.Context())
			io.WriteString(w, "answer")
		}), slog.New(slog.DiscardHandler))
		go server.Serve(l)
		defer server.Close()
		client := inner.dial("192.0.2.1:1")
		for _, request := range []string{"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
			"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody"} {
			go io.WriteString(client, request)
			answer := make([]byte, 4096)
			for text := ""; !strings.Contains(text, "answer"); {
				n, err := client.Read(answer)
				if text += string(answer[:n]); err != nil {
					t.Fatalf("%v after %q", err, text)
				}
			}
			if err := <-cut; err != nil {
				t.Errorf("the handler of %s: %v", request, err)
			}
		}
		if got := l.Refused(conns.CapPerAddress); got != 2 {
			t.Errorf("%d connections were refused, want 2", got)
		}
		client.Close()
		synctest.Wait()
		for text, most := range map[string]time.Duration{
			"GET / HT": conns.Grace + time.Second,
			"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n": 2*time.Minute + conns.Grace + time.Minute + time.Second,
		} {
			client := inner.dial("192.0.2.1:3")
			go io.WriteString(client, text)
			began := time.Now()
			io.Copy(io.Discard, client)
			if took := time.Since(began); took > most {
				t.Errorf("%q held a place for %v", text, took)
			}
		}
	})
}
