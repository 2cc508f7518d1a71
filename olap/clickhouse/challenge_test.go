package clickhouse

import (
	"context"
	"errors"
	"net"
	"testing"
)

// An engine that is stopped or has too much to do takes connections and says nothing. To report it as another program
// would send its operator looking for one.
func TestSilentEngineIsNoStranger(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ctx, cancel := context.WithCancel(t.Context())
	accepted := make(chan net.Conn, 1)
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			_, _ = conn.Read(make([]byte, 1)) // the question has arrived; nothing answers it
			accepted <- conn
		}
		cancel()
	}()
	_, err = address{Addr: listener.Addr().String(), challenge: newChallenge()}.dial(ctx, "tcp", "")
	if err == nil || errors.Is(err, ErrStranger) {
		t.Errorf("a silent engine: %v", err)
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("it does not say why it ended: %v", err)
	}
	(<-accepted).Close()
}

// Nor is one a stranger that hangs up, as an engine without memory for a connection does.
func TestEngineThatHangsUpIsNoStranger(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			_, _ = conn.Read(make([]byte, 1024)) // all of the question: else closing is a reset
			conn.Close()
		}
	}()
	_, err = address{Addr: listener.Addr().String(), challenge: newChallenge()}.dial(t.Context(), "tcp", "")
	if err == nil || errors.Is(err, ErrStranger) {
		t.Errorf("an engine that hangs up: %v", err)
	}
}
