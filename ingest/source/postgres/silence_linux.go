package postgres

import (
	"errors"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// maxSilence is how long a host may take nothing that is sent to it. Linux would go on sending for a quarter of an hour
// to one that is gone, where the name has another address by then.
const maxSilence = time.Minute

// endSilence is the Control of a net.Dialer. Statements are short, so that a host which is there always takes them.
func endSilence(network, _ string, c syscall.RawConn) (err error) {
	if !strings.HasPrefix(network, "tcp") {
		return nil
	}
	failed := c.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(maxSilence.Milliseconds()))
	})
	return errors.Join(failed, err)
}
