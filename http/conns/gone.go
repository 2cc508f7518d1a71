package conns

import (
	"net"
	"syscall"
)

// Gone reports whether the peer of a connection has closed it, or reset it, as far as the system knows. It reads
// nothing of what the peer sent before, and may be called while others use the connection. c may be a TLS connection.
//
// A peer that closed only its sending half is gone too: almost nobody who still waits for an answer does so, and
// nothing distinguishes it from the others.
func Gone(c net.Conn) bool {
	for {
		if raw, ok := c.(syscall.Conn); ok {
			return goneBelow(raw)
		}
		switch outer := c.(type) {
		case interface{ NetConn() net.Conn }:
			c = outer.NetConn()
		case *conn:
			c = outer.Conn
		default:
			return false
		}
	}
}

func goneBelow(c syscall.Conn) (gone bool) {
	raw, err := c.SyscallConn()
	if err != nil {
		return true // closed on this side
	}
	if raw.Control(func(fd uintptr) { gone = ended(int(fd)) }) != nil {
		return true
	}
	return gone
}
