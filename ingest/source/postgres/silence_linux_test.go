package postgres_test

import (
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A connection to a host that is gone ends after a minute, and not when Linux has sent for a quarter of an hour.
func TestAHostThatIsGone(t *testing.T) {
	address, _ := layout(t)
	raw, err := open(t, address).Socket(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var milliseconds int
	failed := raw.Control(func(fd uintptr) {
		milliseconds, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT)
	})
	if err = errors.Join(failed, err); err != nil || time.Duration(milliseconds)*time.Millisecond != time.Minute {
		t.Errorf("what is sent is unanswered for %d ms, %v", milliseconds, err)
	}
}
