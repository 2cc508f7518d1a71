//go:build !linux

package conns

import "golang.org/x/sys/unix"

// ended peeks at the next byte. The end of the connection is not seen before what the peer sent last has been read.
func ended(fd int) bool {
	var next [1]byte
	n, _, err := unix.Recvfrom(fd, next[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
	if err != nil {
		return err != unix.EAGAIN && err != unix.EINTR
	}
	return n == 0
}
