package conns

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// A conn is a connection that a Listener counts. A request is what is read between two writes.
type conn struct {
	net.Conn
	listener *Listener
	address  netip.Addr
	unread   atomic.Bool // drain before closing

	mu       sync.Mutex
	received int64         // bytes of the request; 0 while there is none
	waited   time.Duration // for bytes of the request, from its first one on
	since    time.Time     // of being idle
	deadline time.Time     // for reading, as the server set it; zero for none
	draining bool
}

// idle reports whether nobody loses anything by the end of the connection, and since when.
func (c *conn) idle() (bool, time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.received == 0 || c.draining, c.since
}

// Read keeps a request to its least rate, besides the server's own deadline. Only the time in which the server
// waits counts: one that has much to do is no fault of the client.
func (c *conn) Read(p []byte) (int, error) {
	began := time.Now()
	c.mu.Lock()
	deadline := c.deadline
	if c.received > 0 {
		due := began.Add(Grace + time.Duration(c.received)*time.Second/MinBytesPerSecond - c.waited)
		if deadline.IsZero() || due.Before(deadline) {
			deadline = due
		}
	}
	c.mu.Unlock()
	if err := c.Conn.SetReadDeadline(deadline); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	if c.received > 0 {
		c.waited += time.Since(began)
	}
	c.received += int64(max(n, 0))
	c.mu.Unlock()
	return n, err
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

// SetReadDeadline is part of net.Conn. It holds from the next Read on.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = t
	return nil
}

// SetDeadline is part of net.Conn.
func (c *conn) SetDeadline(t time.Time) error {
	c.SetReadDeadline(t)
	return c.Conn.SetWriteDeadline(t)
}

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
