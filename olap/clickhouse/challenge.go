package clickhouse

import (
	"bufio"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// A challenge is a question that only one run of the engine can answer. Both strings are random, are made for that run
// and are in files that only the owner of the data directory can read. Who takes the port of an engine that died learns
// the question from the first client, and the answer from nobody: the engine that had it is gone, and the next one has
// another challenge.
type challenge struct {
	Instance string `json:"instance"` // names the run; GET /<Instance> asks for the proof
	Proof    string `json:"proof"`
}

func newChallenge() challenge { return challenge{Instance: randomHex(16), Proof: randomHex(32)} }

// ErrStranger is returned when another program answers at the address of the embedded engine.
var ErrStranger = errors.New("another program has the port of the embedded engine")

// maxAnswerBytes bounds the answer to a challenge, headers included. The engine's has about 500.
const maxAnswerBytes = 4 << 10

// dial connects to the engine and has it prove that it is the one that published the address, on that very connection:
// nothing secret is sent before. The network and address arguments are those of the caller, which cannot detect more.
func (a address) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp", a.Addr)
	if err != nil {
		return nil, err
	}
	if err := within(ctx, conn, func() error { return a.verify(conn) }); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// within does something with a new connection, until ctx is done and for dialTimeout at most.
func within(ctx context.Context, conn net.Conn, do func() error) error {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	interrupted := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	err := do()
	if !interrupted() { // the deadline is set, or just being set
		err = errors.Join(ctx.Err(), err)
	}
	return err
}

// verify sends the challenge and compares the answer. It leaves the connection as it was, ready for a request.
func (c challenge) verify(conn net.Conn) error {
	if _, err := fmt.Fprintf(conn, "GET /%s HTTP/1.1\r\nHost: engine\r\n\r\n", c.Instance); err != nil {
		return err
	}
	reader := bufio.NewReader(io.LimitReader(conn, maxAnswerBytes))
	response, err := http.ReadResponse(reader, nil)
	// Who says nothing, or hangs up, may be the engine: stopped, too busy or short of memory.
	if silent := net.Error(nil); errors.As(err, &silent) || errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrStranger, err)
	}
	defer response.Body.Close()
	proof, err := io.ReadAll(response.Body)
	if err != nil || response.Close || reader.Buffered() > 0 || subtle.ConstantTimeCompare(proof, []byte(c.Proof)) == 0 {
		return ErrStranger
	}
	return nil
}
