package failure_test

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/runlens/runlens/olap/failure"
)

// Where a connection is taken and nothing comes on it, there is too much to do; where none is taken, something is wrong
// (contract 4.21).
func TestSilenceIsOverload(t *testing.T) {
	t.Parallel()
	// The kernel takes connections for it.
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	for _, protocol := range []clickhouse.Protocol{clickhouse.HTTP, clickhouse.Native} {
		for address, want := range map[string]bool{silent.Addr().String(): true, gone.Addr().String(): false} {
			conn, err := clickhouse.Open(&clickhouse.Options{
				Addr: []string{address}, Protocol: protocol, DialTimeout: 2 * time.Second, ReadTimeout: time.Minute,
			})
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			err = conn.Exec(t.Context(), "SELECT 1")
			if got := failure.OfStatement(t.Context(), began, "ask", err); errors.Is(got, failure.ErrOverloaded) != want {
				t.Errorf("%s, silent: %t: %v", protocol, want, got)
			}
			conn.Close()
		}
	}
}
