// Package conns bounds what a client can use of a server before it sends a key: connections, and the time
// in which a request has to arrive. It wraps a listener and knows nothing of HTTP but that a server reads a
// request and then writes its answer.
//
//  1. When places run out, a new connection takes the place of another one, as room.go says. The new one is closed
//     only where all others are worth more.
//  2. From its first byte on, the server waits for a request for Grace, and a second for each MinBytesPerSecond of it.
//     As long it waits for the client to take an answer.
//  3. A connection whose answer came before the end of its request is drained before it is closed (LeaveUnread).
//     Closed at once, the kernel resets it, and the client may lose the answer.
//  4. Accept never fails while the listener is open. Out of descriptors, it closes a connection and tries again.
//  5. Once the listener is closed, a connection without a request has a second to begin one.
//
// Every address on which a command answers has a Listener, and a server of net/http there is made by NewServer.
package conns

import (
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"time"
)

const (
	// Grace is how long a server waits for a request at whatever rate it arrives.
	Grace = 5 * time.Second
	// MinBytesPerSecond is the least rate at which a request has to arrive once Grace is used up.
	MinBytesPerSecond = 64 << 10

	// drainBytes and drainTime bound what is still read of a connection that is left unread.
	drainBytes = 16 << 20
	drainTime  = 5 * time.Second
	// drainTurn is how long one connection is drained before another one has its turn.
	drainTurn = 2 * time.Millisecond

	// receiveBuffer is how much of a connection the kernel takes in before the server reads it; without a bound
	// it grows to megabytes, and a flood is copied before anybody can refuse it.
	receiveBuffer = 128 << 10

	// lastRequest is how long a connection may still begin a request when nobody listens any more. Browsers and load
	// balancers open some that they never use.
	lastRequest = time.Second

	minBackoff = 5 * time.Millisecond
	maxBackoff = time.Second
	// logEvery is how often at most one kind of trouble is logged.
	logEvery = time.Minute
)

// The names of the caps in metrics and logs.
const (
	CapAll        = "all"
	CapPerAddress = "address"
)

// Caps are the most connections at once, each at least 1.
type Caps struct {
	All        int
	PerAddress int            // of one IPv4 address or one IPv6 network of 64 bits
	Crowded    int            // PerAddress while half of all places are taken; 0 for the same
	Exempt     []netip.Prefix // proxies: each of their connections may be somebody else's, and counts for itself
}

// A Listener is a listener with bounds. Make it with Limit. It is safe for concurrent use.
type Listener struct {
	net.Listener
	caps   Caps
	logger *slog.Logger
	closed chan struct{}
	ended  time.Time // when closed was closed; read after that
	close  func() error
	turns  chan struct{} // held while a connection is drained

	mu        sync.Mutex
	open      []*conn // each knows its place
	origins   map[netip.Addr]*origin
	refused   map[string]uint64 // by the cap that was reached
	displaced uint64
	logged    map[string]time.Time
}

// Limit returns inner with caps. Closing the Listener closes inner.
func Limit(inner net.Listener, caps Caps, logger *slog.Logger) *Listener {
	l := &Listener{
		Listener: inner, caps: caps, logger: logger, closed: make(chan struct{}),
		turns:   make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)),
		origins: map[netip.Addr]*origin{}, refused: map[string]uint64{}, logged: map[string]time.Time{},
	}
	l.close = sync.OnceValue(func() error {
		l.ended = time.Now()
		close(l.closed)
		err := inner.Close()
		l.mu.Lock()
		open := slices.Clone(l.open)
		l.mu.Unlock()
		for _, c := range open {
			c.mu.Lock()
			c.renew()
			c.mu.Unlock()
		}
		return err
	})
	return l
}

// Close stops listening. Connections stay, but those without a request, which have a second to begin one.
func (l *Listener) Close() error { return l.close() }

// Accept returns the next connection that is within the caps. The error is always net.ErrClosed.
func (l *Listener) Accept() (net.Conn, error) {
	pause := minBackoff
	for {
		inner, err := l.Listener.Accept()
		if err == nil {
			if tcp, ok := inner.(*net.TCPConn); ok {
				tcp.SetReadBuffer(receiveBuffer) // where the kernel refuses, its own bounds hold
			}
			c, full := l.admit(inner)
			if c != nil {
				return c, nil
			}
			l.report(full, "connections are refused: nobody's place can be taken for them", "cap", full)
			continue
		}
		if l.isClosed() {
			return nil, net.ErrClosed
		}
		l.report("accept", "a connection could not be accepted", "error", err)
		l.mu.Lock()
		l.makeRoom(func(_ *conn, does activity) int {
			if does.state == working {
				return 0
			}
			return does.classFor(false)
		})
		l.mu.Unlock()
		select {
		case <-l.closed:
			return nil, net.ErrClosed
		case <-time.After(pause):
		}
		pause = min(2*pause, maxBackoff)
	}
}

func (l *Listener) isClosed() bool {
	select {
	case <-l.closed:
		return true
	default:
		return false
	}
}

// Open is the number of connections.
func (l *Listener) Open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open)
}

// Refused is how many connections were refused under a cap, CapAll or CapPerAddress, so far.
func (l *Listener) Refused(by string) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refused[by]
}

// Displaced is how many connections were closed so far because others needed their places.
func (l *Listener) Displaced() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.displaced
}

// report logs one kind of trouble, now and then.
func (l *Listener) report(kind, message string, attributes ...any) {
	l.mu.Lock()
	now := time.Now()
	due := now.Sub(l.logged[kind]) >= logEvery
	if due {
		l.logged[kind] = now
	}
	l.mu.Unlock()
	if due {
		l.logger.Warn(message, attributes...)
	}
}

// LeaveUnread says that a server is going to close a connection before it has read all of the request, so
// that Close first drains it. c may be a TLS connection. A connection that no Listener accepted is left alone.
func LeaveUnread(c net.Conn) {
	if ours := accepted(c); ours != nil {
		ours.unread.Store(true)
	}
}

// Authenticated says whether the last request of a connection had a valid key. c is as for LeaveUnread.
func Authenticated(c net.Conn, valid bool) {
	if ours := accepted(c); ours != nil {
		ours.mu.Lock()
		ours.authenticated = valid
		ours.mu.Unlock()
	}
}

// Silent reports whether nothing was read of a connection since it was opened or last written to. c is as for
// LeaveUnread, false where no Listener accepted it.
func Silent(c net.Conn) bool {
	ours := accepted(c)
	if ours == nil {
		return false
	}
	ours.mu.Lock()
	defer ours.mu.Unlock()
	return ours.received == 0
}

// accepted is the connection of a Listener, also beneath TLS; nil where there is none.
func accepted(c net.Conn) *conn {
	if secured, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = secured.NetConn()
	}
	ours, _ := c.(*conn)
	return ours
}
