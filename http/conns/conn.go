package conns

import (
	"io"
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
	began    time.Time // first byte of the request; zero while there is none
	received int64     // bytes of the request
	since    time.Time // of being idle
	deadline time.Time // for reading, as the server set it; zero for none
	draining bool
}

// idle reports whether nobody loses anything by the end of the connection, and since when.
func (c *conn) idle() (bool, time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.began.IsZero() || c.draining, c.since
}

// Read keeps a request to its least rate, besides the server's own deadline.
func (c *conn) Read(p []byte) (int, error) {
	c.mu.Lock()
	deadline := c.deadline
	if !c.began.IsZero() {
		due := c.began.Add(Grace + time.Duration(c.received)*time.Second/MinBytesPerSecond)
		if deadline.IsZero() || due.Before(deadline) {
			deadline = due
		}
	}
	c.mu.Unlock()
	if err := c.Conn.SetReadDeadline(deadline); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.mu.Lock()
		if c.began.IsZero() {
			c.began = time.Now()
		}
		c.received += int64(n)
		c.mu.Unlock()
	}
	return n, err
}

// Write ends the request: whatever is read next belongs to another one.
func (c *conn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.mu.Lock()
	c.began, c.received, c.since = time.Time{}, 0, time.Now()
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
		if c.Conn.SetReadDeadline(time.Now().Add(drainTime)) == nil {
			io.CopyN(io.Discard, c.Conn, drainBytes) // the client's business from here on
		}
	}()
	return nil
}

func (c *conn) end() error {
	c.listener.mu.Lock()
	c.listener.forget(c)
	c.listener.mu.Unlock()
	return c.Conn.Close()
}
