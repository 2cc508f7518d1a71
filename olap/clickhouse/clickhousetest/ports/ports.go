// Package ports finds ports for servers of tests that can't choose one themselves.
package ports

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// attempts is how many ports more than it needs Free tries.
const attempts = 100

// Free returns different ports of the address 127.0.0.1 that nobody listens on. The system gives them to nobody who
// asks for any port, so that they are free until the server listens, and again between its end and its next start.
func Free(n int) (ports []string, err error) {
	for tries := 0; len(ports) < n; tries++ {
		port := strconv.Itoa(10_000 + rand.IntN(20_000))
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port))
		if err != nil {
			if tries > attempts {
				return nil, err
			}
			continue
		}
		defer listener.Close()
		ports = append(ports, port)
	}
	return ports, nil
}

// FreeFor is Free for a test, which fails without them.
func FreeFor(t testing.TB, n int) []string {
	t.Helper()
	ports, err := Free(n)
	if err != nil {
		t.Fatal(err)
	}
	return ports
}
