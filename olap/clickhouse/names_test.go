package clickhouse_test

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/runlens/runlens/olap/clickhouse"
)

// twoAddresses is a name for which resolve answers 127.0.0.1 and 127.0.0.2, always in this order.
const twoAddresses = "two.nodes.example"

// resolve answers questions for addresses over DNS until the test ends, all of them with those of twoAddresses.
func resolve(t *testing.T) {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	go func() {
		for question := make([]byte, 1500); ; {
			n, from, err := server.ReadFrom(question)
			if err != nil {
				return
			}
			// After a header of 12 bytes the name, which ends with 0, its type and its class; the rest is of EDNS.
			end := 12 + strings.IndexByte(string(question[12:n]), 0) + 5
			answer := append([]byte{}, question[:end]...)
			copy(answer[2:12], []byte{0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0})
			if a := uint16(1); binary.BigEndian.Uint16(answer[end-4:]) == a {
				for _, text := range []string{"127.0.0.1", "127.0.0.2"} {
					answer[7]++
					answer = append(answer, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4) // that name, A, IN, a minute, 4 bytes
					answer = append(answer, netip.MustParseAddr(text).AsSlice()...)
				}
			}
			server.WriteTo(answer, from)
		}
	}()
	clickhouse.ResolveBy(t, &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", server.LocalAddr().String())
	}})
}

// A name has two addresses, of which only the first is dialed while it answers. That the second is another node is
// known at the start all the same, before anything is stored in one of them.
func TestNodesOfANameAreRefusedAtTheStart(t *testing.T) {
	left, right := twoNodes(t)
	database := store(t, map[*node]string{left: tableA, right: tableB})
	const tableC = "cccccccc-0000-4000-8000-000000000003"
	shared := store(t, map[*node]string{left: tableC, right: tableC})
	resolve(t)
	for name, of := range map[string]struct {
		scheme string
		secure bool
	}{"native": {"clickhouse", false}, "native in TLS": {"clickhouse", true}, "http": {"http", false},
		"https": {"https", true}} {
		t.Run(name, func(t *testing.T) {
			first := byConnection(t, of.scheme, of.secure)
			u, err := url.Parse(first.url(""))
			if err != nil {
				t.Fatal(err)
			}
			first.reach(left)
			named := &balancer{url: func(database string) string {
				return strings.Replace(first.url(database), "127.0.0.1", twoAddresses, 1)
			}}
			if _, _, err := through(t, named, database); err != nil {
				t.Fatalf("while the second address is away: %v", err)
			}
			byConnectionAt(t, "127.0.0.2:"+u.Port(), of.scheme, of.secure).reach(right)
			_, _, err = through(t, named, database)
			if !errors.Is(err, clickhouse.ErrOtherNode) {
				t.Fatalf("the start ends with %v", err)
			}
			expectBothNamed(t, err.Error())
			if _, _, err := through(t, named, shared); err != nil {
				t.Errorf("nodes that share the table: %v", err)
			}
		})
	}
}
