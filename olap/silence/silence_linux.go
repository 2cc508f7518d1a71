package silence

import (
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// End returns the Control of a net.Dialer whose connections fail once the host has taken nothing of what is sent to it
// for so long. So it must be longer than a host that works may read nothing. 'after' is a positive number of whole
// milliseconds. Other connections than those of TCP are left alone. What is like Linux but lacks the option decides.
func End(after time.Duration) func(network, address string, c syscall.RawConn) error {
	return func(network, _ string, c syscall.RawConn) error {
		if !strings.HasPrefix(network, "tcp") {
			return nil
		}
		return c.Control(func(fd uintptr) {
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(after.Milliseconds()))
		})
	}
}
