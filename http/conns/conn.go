package conns

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A conn is a connection that a Listener counts. A request is what is read between two writes.
type conn struct {
	net.Conn
	listener *Listener
	origin   *origin
	place    int         // in listener.open, -1 for none; with listener.mu
	unread   atomic.Bool // drain before closing

	mu            sync.Mutex
	reading       bool          // the server waits for bytes, or has not begun to
	received      int64         // bytes of the request; 0 while there is none
	waited        time.Duration // for bytes of the request, from its first one on
	began         time.Time     // the wait for bytes that goes on
	since         time.Time     // of being idle, or of the request's first byte
	deadline      time.Time     // for reading, as the server set it; zero for none
	answering     bool          // the server took the deadline away
	authenticated bool          // the last request had a valid key
	draining      bool
}

// A state says what is lost with a connection, from the least on.
type state int

const (
	idle     state = iota // nothing
	arriving              // a request of which the server has a part
	working               // an answer that the server is at work on
)

// An activity is what a connection does, and since when.
type activity struct {
	state
	since         time.Time
	authenticated bool // its last request had a valid key
}

func (c *conn) does() activity {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := activity{idle, c.since, c.authenticated && !c.draining}
	switch {
	case c.draining:
	case c.answering || !c.reading:
		a.state = working
	case c.received > 0:
		a.state = arriving
	}
	return a
}

// Read keeps a request to its least rate, besides the server's own deadline. Only the time in which the server
// waits counts: one that has much to do is no fault of the client.
func (c *conn) Read(p []byte) (int, error) {
	c.mu.Lock()
	c.reading, c.began = true, time.Now()
	err := c.Conn.SetReadDeadline(c.due())
	c.mu.Unlock()
	n := 0
	if err == nil {
		n, err = c.Conn.Read(p)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reading = false
	now := time.Now()
	if c.received > 0 {
		c.waited += now.Sub(c.began)
	} else if n > 0 {
		c.since = now
	}
	c.received += int64(max(n, 0))
	return n, err
}

// due is when the wait for bytes ends: at the server's deadline, or before. The caller holds c.mu.
func (c *conn) due() time.Time {
	var most time.Time
	switch {
	case c.answering:
		return c.deadline
	case c.received > 0:
		most = c.began.Add(Grace + time.Duration(c.received)*time.Second/MinBytesPerSecond - c.waited)
	case c.listener.isClosed():
		most = c.listener.ended.Add(lastRequest)
	default:
		return c.deadline
	}
	if !c.deadline.IsZero() && c.deadline.Before(most) {
		return c.deadline
	}
	return most
}

// renew has a Read that waits wait for what is due now. The caller holds c.mu.
func (c *conn) renew() {
	if c.reading {
		c.Conn.SetReadDeadline(c.due())
	}
}

// Write ends the request: whatever is read next belongs to another one. The client has to take what is written at
// the same rate at which it has to send, whatever deadline the server set.
func (c *conn) Write(p []byte) (int, error) {
	if err := c.Conn.SetWriteDeadline(time.Now().Add(Grace +
		time.Duration(len(p))*time.Second/MinBytesPerSecond)); err != nil {
		return 0, err
	}
	n, err := c.Conn.Write(p)
	c.mu.Lock()
	c.received, c.waited, c.since = 0, 0, time.Now()
	c.mu.Unlock()
	return n, err
}

// SetReadDeadline is part of net.Conn. A Read that waits ends by it, too. To take the deadline away says that the
// request is whole, until there is a deadline again: net/http then reads ahead to learn that the client is gone, which
// owes it nothing. The error is always nil, also where the connection was closed to make room for another: fasthttp
// panics at errors of deadlines, and the next Read or Write fails.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline, c.answering = t, t.IsZero()
	c.renew()
	return nil
}

// SetWriteDeadline is part of net.Conn. It does nothing: every Write has a deadline of its own.
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

// SetDeadline is part of net.Conn.
func (c *conn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

// Close closes the connection, drained if LeaveUnread was called. It returns at once.
func (c *conn) Close() error {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok || !c.unread.Swap(false) || half.CloseWrite() != nil {
		return c.end()
	}
	c.mu.Lock()
	c.draining, c.since = true, time.Now()
	c.mu.Unlock()
	go func() {
		defer c.end()
		c.drain(time.Now().Add(drainTime))
	}()
	return nil
}

// drainBuffers are large, since a flood of requests that are refused is mostly draining.
var drainBuffers = sync.Pool{New: func() any { return new([64 << 10]byte) }}

// drain reads until the client has sent everything, until the deadline, or until drainBytes are over. It waits for
// bytes by itself and reads them in turn with others: while a flood is drained, it is the flood that waits.
func (c *conn) drain(deadline time.Time) {
	var few [512]byte
	for left := drainBytes; left > 0; {
		if c.Conn.SetReadDeadline(deadline) != nil {
			return
		}
		n, err := c.Conn.Read(few[:])
		if err != nil {
			return
		}
		left -= n
		c.listener.turns <- struct{}{}
		n = c.readAvailable()
		<-c.listener.turns
		left -= n
	}
}

// readAvailable reads what has arrived, for at most drainTurn.
func (c *conn) readAvailable() (total int) {
	buffer := drainBuffers.Get().(*[64 << 10]byte)
	defer drainBuffers.Put(buffer)
	if c.Conn.SetReadDeadline(time.Now().Add(drainTurn)) != nil {
		return 0
	}
	for {
		n, err := c.Conn.Read(buffer[:])
		total += n
		if err != nil {
			return total
		}
	}
}

func (c *conn) end() error {
	c.listener.mu.Lock()
	c.listener.forget(c)
	c.listener.mu.Unlock()
	return c.Conn.Close()
}
