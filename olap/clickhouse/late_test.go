package clickhouse

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/runlens/runlens/olap/cost"
)

// A connection that is there only when its statement's time is up is closed, and not kept for other statements: the
// driver has given the transport up. Each connection is a thread of ClickHouse.
func TestALateConnectionIsClosed(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for _, ctx := range []context.Context{t.Context(), reads(t.Context())} {
		dialling, late := make(chan struct{}), make(chan struct{})
		transport := &http.Transport{IdleConnTimeout: time.Hour, DialContext: func(context.Context, string, string) (net.Conn,
			error) {
			close(dialling)
			<-late
			return net.Dial("tcp", listener.Addr().String())
		}}
		ctx, cancel := context.WithCancel(ctx)
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://clickhouse/", nil)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			<-dialling
			cancel()
		}()
		sender := repeater{Transport: &cost.Transport{Transport: transport}, embedded: true}
		if _, err := sender.RoundTrip(request); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		close(late)
		conn, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		conn.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("the connection was kept: %v", err)
		}
		conn.Close()
	}
}
