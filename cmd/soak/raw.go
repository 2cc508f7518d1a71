package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/runlens/runlens/cmd/internal/harness"
)

const (
	// firstPatience is how long the first answer to a crafted request is waited for. Requests that never end get none.
	firstPatience = 1500 * time.Millisecond
	// furtherPatience is how long a further answer on the same connection is waited for.
	furtherPatience = 60 * time.Millisecond
	// segmentPause lies between parts of a request that must not arrive together.
	segmentPause = 20 * time.Millisecond
)

// A dial opens a connection to a server or to a proxy in front of it.
type dial func(context.Context) (net.Conn, error)

func dialTCP(address string) dial { return dialNetwork("tcp", address) }

func dialNetwork(network, address string) dial {
	return func(ctx context.Context) (net.Conn, error) {
		dialer := net.Dialer{Timeout: answerPatience}
		return dialer.DialContext(ctx, network, address)
	}
}

// exchange sends a crafted request and reads what comes back on its connection, in order, without interim answers. The
// error is that of opening the connection.
func exchange(ctx context.Context, open dial, attack attack) ([]answer, error) {
	connection, err := open(ctx)
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	written := make(chan struct{})
	go func() {
		defer close(written)
		for i, segment := range attack.segments {
			if i > 0 && !harness.Pause(ctx, segmentPause) {
				return
			}
			if _, err := io.WriteString(connection, segment); err != nil {
				return
			}
		}
	}()
	replies := readAnswers(connection, attack.method)
	connection.Close() // ends the writing
	<-written
	return replies, nil
}

// readAnswers reads answers until the connection is closed or no further one comes. The first one answers the method.
func readAnswers(connection net.Conn, method string) (all []answer) {
	input := bufio.NewReader(connection)
	patience := firstPatience
	for {
		connection.SetReadDeadline(time.Now().Add(patience))
		a := answer{sent: time.Now(), toHead: method == http.MethodHead}
		response, err := http.ReadResponse(input, &http.Request{Method: method})
		if err != nil {
			return all
		}
		a.status, a.header = response.StatusCode, response.Header
		if a.status < 200 {
			continue // interim: the answer follows
		}
		connection.SetReadDeadline(time.Now().Add(firstPatience))
		a.body, err = io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil {
			return all
		}
		a.arrived = time.Now()
		all = append(all, a)
		if response.Close {
			return all
		}
		method, patience = http.MethodGet, furtherPatience
	}
}
