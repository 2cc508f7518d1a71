package clickhouse_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/runlens/runlens/olap/clickhouse"
	"github.com/runlens/runlens/olap/failure"
)

// A host that takes no connection has a fault; it is not one that has too much to do (contract 4.21).
func TestAHostThatIsAwayIsNotOverloaded(t *testing.T) {
	t.Parallel()
	// The kernel takes no connection more than a listener may have waiting, and says nothing to the others.
	listener, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(listener) })
	if err := errors.Join(unix.Bind(listener, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}),
		unix.Listen(listener, 0)); err != nil {
		t.Fatal(err)
	}
	at, err := unix.Getsockname(listener)
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", at.(*unix.SockaddrInet4).Port)
	for range 3 {
		if conn, err := net.DialTimeout("tcp", address, time.Second/5); err == nil {
			t.Cleanup(func() { conn.Close() })
		}
	}
	for _, scheme := range []string{"http", "clickhouse"} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			server, err := clickhouse.Open(context.Background(), clickhouse.Config{URL: scheme + "://" + address + "/runlens"})
			if err == nil {
				server.Close()
				t.Fatal("opened")
			}
			var network net.Error
			if !errors.As(err, &network) || !network.Timeout() || errors.Is(failure.Of("open", err), failure.ErrOverloaded) {
				t.Errorf("%v, said to be: %v", err, failure.Of("open", err))
			}
		})
	}
}
