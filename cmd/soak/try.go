package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"

	"github.com/google/uuid"
)

// try makes one attack on a connection of its own, and then sends something harmless on another one, which may share
// the proxy's connection to the server with the attack.
func (g *smuggling) try(ctx context.Context, a attack, n string) {
	outer, inner := identifiers(n)
	replies, err := exchange(ctx, g.way.dial, a.with(n))
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		g.attacker.add("no connection")
		return
	}
	if len(replies) == 0 {
		g.attacker.add("no answer")
	}
	for i, reply := range replies {
		g.judge(a, i, reply, outer, inner)
	}
	if g.way.direct {
		return // every client has connections of its own
	}
	after := attack{name: "the request after: " + a.name, method: http.MethodGet,
		segments: []string{"GET " + catalogPath + " HTTP/1.1\r\nHost: soak\r\nx-request-id: " + outerMark + "\r\n\r\n"}}
	outer, inner = identifiers("a" + n)
	replies, err = exchange(ctx, g.way.dial, after.with("a"+n))
	if err != nil || ctx.Err() != nil {
		return
	}
	for i, reply := range replies {
		g.judge(after, i, reply, outer, inner)
	}
}

// judge says what the i-th answer on the attacker's connection is.
func (g *smuggling) judge(a attack, i int, reply answer, outer, inner string) {
	if g.ofProxy(reply) {
		g.attacker.add(fmt.Sprintf("the proxy's %d", reply.status))
		return
	}
	g.attacker.add(reply.outcome())
	id := reply.header.Get("X-Request-Id")
	_, notMade := uuid.Parse(id)
	made := notMade == nil // by the server, for a request whose own it has not read
	switch {
	case reply.status < http.StatusBadRequest || bytes.Contains(reply.body, []byte(victimAgent)):
		g.foreign.add("%s: %d %.300s", a.name, reply.status, reply.body)
	case reply.breach() != "":
		g.shapes.add("%s: %s", a.name, reply.breach())
	case !keyless(reply.status):
		g.shapes.add("%s: %d %s", a.name, reply.status, reply.body)
	case i == 0 && (id == outer || made && a.unreadable):
	case i > 0 && (id == inner || made):
		// A proxy that reads two requests has two answered; that is its own way of reading.
		if g.way.direct && !a.pipelined {
			g.requests.add("%s: answer %d is %d to %q", a.name, i+1, reply.status, id)
		}
	default:
		g.foreign.add("%s: answer %d is %d to %q, not to %q", a.name, i+1, reply.status, id, outer)
	}
}

// keyless reports whether a request without a valid key may be refused with a status.
func keyless(status int) bool {
	switch status {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusNotFound, http.StatusMethodNotAllowed,
		http.StatusTooManyRequests:
		return true
	default:
		return false
	}
}
