package conns

import "golang.org/x/sys/unix"

// tcpEstablished is TCP_ESTABLISHED of the kernel's tcp_states.h. A connection leaves that state when the peer's end
// arrives, whatever is still to be read before it: the close_notify of TLS, or another request.
const tcpEstablished = 1

func ended(fd int) bool {
	info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	return err == nil && info.State != tcpEstablished
}
