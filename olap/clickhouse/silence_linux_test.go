package clickhouse_test

import (
	"errors"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/runlens/runlens/olap/clickhouse"
)

// A statement to a host that is gone fails after two and a half minutes, not when Linux has sent for a quarter of an
// hour.
func TestAHostThatIsGone(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conn, err := clickhouse.DialElsewhere(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var milliseconds int
	failed := raw.Control(func(fd uintptr) {
		milliseconds, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT)
	})
	if err = errors.Join(failed, err); err != nil || time.Duration(milliseconds)*time.Millisecond != 150*time.Second {
		t.Errorf("what is sent is unanswered for %d ms, %v", milliseconds, err)
	}
}
