package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

// A bodyAttack is what every connection of a crowd does after it is open.
type bodyAttack struct {
	name  string
	whole []byte        // what is sent at once
	slow  []byte        // what then follows a byte a second; empty for nothing
	hold  time.Duration // how long the connection is held unless the server closes it
	legal bool          // the server must answer the question, or say that it has too much to do
}

// bodyAttacks are the attacks of the part bodies.
func bodyAttacks(address, key string, body []byte, hold time.Duration) []bodyAttack {
	head := func(authorization string, length int) []byte {
		return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n"+
			"%sContent-Length: %d\r\n\r\n", queryPath, address, authorization, length)
	}
	keyless := head("", len(body))
	return []bodyAttack{
		{name: "largest request", whole: append(head("Authorization: Bearer "+key+"\r\n", len(body)), body...),
			hold: 4 * answerPatience, legal: true},
		{name: "stalled body", whole: append(keyless, body[:len(body)/2]...), hold: hold},
		{name: "stalled headers", whole: keyless[:len(keyless)/2], hold: hold},
		{name: "trickled body", whole: keyless, slow: body, hold: hold},
		{name: "trickled headers", whole: keyless[:20], slow: keyless[20:], hold: hold},
	}
}

// A crowd is a number of connections that attack at once.
type crowd struct {
	address string
	size    int
	local   string // the address that it attacks from; empty for the system's choice

	outcomes counts
	breaches examples
}

// run opens all connections, then lets them attack at once, and returns when all are closed.
func (c *crowd) run(ctx context.Context, attack bodyAttack) {
	connections := make([]net.Conn, c.size)
	var opening, attacking sync.WaitGroup
	slots := make(chan struct{}, 64) // the system's queue of a listener is short
	for i := range connections {
		opening.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			var dialer net.Dialer
			if c.local != "" {
				dialer.LocalAddr = &net.TCPAddr{IP: net.ParseIP(c.local)}
			}
			dial, cancel := context.WithTimeout(ctx, answerPatience)
			defer cancel()
			connection, err := dialer.DialContext(dial, "tcp", c.address)
			if err != nil {
				c.outcomes.add("refused")
				return
			}
			connections[i] = connection
		})
	}
	opening.Wait()
	for _, connection := range connections {
		if connection != nil {
			attacking.Go(func() { c.attack(ctx, connection, attack) })
		}
	}
	attacking.Wait()
}

// attack sends and reads on one connection until the server has answered or closed it, or the attack is over.
func (c *crowd) attack(ctx context.Context, connection net.Conn, attack bodyAttack) {
	ctx, cancel := context.WithTimeout(ctx, attack.hold)
	defer cancel()
	closed := context.AfterFunc(ctx, func() { connection.SetDeadline(time.Now()) })
	defer closed()
	defer connection.Close()
	go send(ctx, connection, attack)
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if err != nil {
		c.outcomes.add(ending(err))
		return
	}
	defer response.Body.Close()
	a := answer{status: response.StatusCode, header: response.Header}
	if a.body, err = io.ReadAll(response.Body); err != nil {
		c.outcomes.add("cut off")
		return
	}
	c.outcomes.add(a.outcome())
	answered := a.status == http.StatusOK || a.status == http.StatusTooManyRequests
	if breach := a.breach(); breach != "" {
		c.breaches.add("%s", breach)
	} else if a.status == http.StatusInternalServerError || attack.legal && !answered {
		c.breaches.add("%s", a.outcome())
	}
}

// send writes at once what is whole and then a byte a second. It ends with the connection.
func send(ctx context.Context, connection net.Conn, attack bodyAttack) {
	if _, err := connection.Write(attack.whole); err != nil {
		return
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for i := range attack.slow {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if _, err := connection.Write(attack.slow[i : i+1]); err != nil {
			return
		}
	}
}

// ending names how a connection ended without an answer.
func ending(err error) string {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return "held to the end"
	}
	return "closed by the server"
}
