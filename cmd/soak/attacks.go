package main

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/runlens/runlens/http/auth"
)

// An attack is a crafted request without a valid key. It holds the identifiers outerMark, of the request itself, and
// innerMark, of a second one that lies where a careless reader takes it for a request.
type attack struct {
	name     string
	method   string
	segments []string
	// pipelined: the second request is one of its own by RFC 9112, so it may be answered.
	pipelined bool
	// unreadable: the header section may be refused before its identifier is read.
	unreadable bool
}

// The marks are replaced by identifiers of the same length, so that lengths in the requests stay true.
const (
	outerMark = "outer-00000000000000"
	innerMark = "inner-00000000000000"
)

// identifiers are those that take the places of the marks in try n.
func identifiers(n string) (outer, inner string) {
	return fmt.Sprintf("outer-%014.14s", n), fmt.Sprintf("inner-%014.14s", n)
}

// with is the attack with the identifiers of try n.
func (a attack) with(n string) attack {
	outer, inner := identifiers(n)
	replace := strings.NewReplacer(outerMark, outer, innerMark, inner)
	segments := make([]string, len(a.segments))
	for i, segment := range a.segments {
		segments[i] = replace.Replace(segment)
	}
	a.segments = segments
	return a
}

// attacks are all crafted requests.
func attacks() []attack {
	key, _ := auth.NewKey() // well formed, and nobody's
	var all []attack
	all = append(all, unreadBodies(key)...)
	all = append(all, chunkedBodies(key)...)
	all = append(all, framings(key)...)
	all = append(all, lengths(key)...)
	all = append(all, headers(key)...)
	return append(all, expectations(key)...)
}

// An inner is what hides in a body.
type inner struct{ name, text string }

// inners are complete and cut-off requests. One that is cut off takes what is sent next on its connection as its own.
func inners(key string) []inner {
	head := opening(http.MethodPost, queryPath, innerMark)
	return []inner{
		{"a request", complete("")},
		{"a request with an unknown key", complete(key)},
		{"a request cut off in its headers", head + "x-swallow: "},
		{"a request cut off in its body", head + "Content-Length: 400\r\n\r\n"},
	}
}

// complete is a whole second request.
func complete(key string) string {
	body := string(smallBody)
	authorization := ""
	if key != "" {
		authorization = "Authorization: Bearer " + key + "\r\n"
	}
	return withLength(opening(http.MethodPost, queryPath, innerMark)+authorization, body)
}

// outer is the beginning of a request, up to the header fields that an attack adds.
func outer(method, path string) string {
	return opening(method, path, outerMark)
}

func opening(method, path, id string) string {
	return method + " " + path + " HTTP/1.1\r\nHost: soak\r\n" +
		"Content-Type: application/json\r\nx-request-id: " + id + "\r\n"
}

func withLength(head, body string) string {
	return fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", head, len(body), body)
}

// paddings move the second request to where a server stops reading a body it doesn't need. A server skips empty lines
// before a request.
var paddings = []int{0, 7 << 10, 12 << 10, 20 << 10, 70 << 10}

// unreadBodies have bodies that no handler needs.
func unreadBodies(key string) (all []attack) {
	for _, target := range []struct{ method, path string }{
		{http.MethodGet, catalogPath}, {http.MethodGet, queryPath}, {http.MethodGet, "/nothing"},
		{http.MethodPost, catalogPath}, {http.MethodPost, "/api/v1/nothing"},
		{http.MethodPut, queryPath}, {http.MethodDelete, catalogPath}, {http.MethodPatch, queryPath},
		{http.MethodOptions, queryPath}, {http.MethodHead, catalogPath},
		{"BREW", queryPath}, {http.MethodPost, queryPath},
	} {
		for i, hidden := range inners(key) {
			padding := strings.Repeat("\r\n", paddings[(len(all)+i)%len(paddings)]/2)
			name := fmt.Sprintf("%s %s with %s after %d bytes", target.method, target.path, hidden.name, len(padding))
			all = append(all, attack{name: name, method: target.method,
				segments: []string{withLength(outer(target.method, target.path), padding+hidden.text)}})
		}
	}
	// A body that is larger than the server takes, within what it still reads and beyond.
	for _, size := range []int{1200 << 10, 17 << 20} {
		body := strings.Repeat("\r\n", size/2) + complete(key)
		all = append(all, attack{name: fmt.Sprintf("a body of %d bytes", len(body)), method: http.MethodPost,
			segments: []string{withLength(outer(http.MethodPost, queryPath), body)}})
	}
	return all
}

// expectations request permission to send a body, and send it anyway or send something else.
func expectations(key string) (all []attack) {
	for _, target := range []struct{ method, path string }{
		{http.MethodPost, queryPath}, {http.MethodPost, catalogPath}, {http.MethodGet, catalogPath},
		{http.MethodPost, "/api/v1/nothing"},
	} {
		for _, expectation := range []string{"100-continue", "nothing"} {
			hidden := complete(key)
			head := fmt.Sprintf("%sExpect: %s\r\nContent-Length: %d\r\n\r\n",
				outer(target.method, target.path), expectation, len(hidden))
			name := fmt.Sprintf("%s %s, Expect: %s", target.method, target.path, expectation)
			all = append(all,
				attack{name: name + ", the body at once", method: target.method, segments: []string{head + hidden}},
				attack{name: name + ", the body later", method: target.method, segments: []string{head, hidden}})
		}
	}
	return all
}
