package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// chunkedBodies are chunked, well or badly, on a path that reads bodies and on one that doesn't.
func chunkedBodies(key string) (all []attack) {
	hidden := complete(key)
	for _, body := range []struct {
		name, text string
		whole      bool // the body has ended where the second request begins
	}{
		{"a chunk extension", "5;a=b\r\nhello\r\n0\r\n\r\n", true},
		{"a long chunk extension", "5;" + strings.Repeat("a", 20<<10) + "\r\nhello\r\n0\r\n\r\n", false},
		{"a trailer", "5\r\nhello\r\n0\r\nx-trailer: a\r\n\r\n", true},
		{"a length as a trailer", "5\r\nhello\r\n0\r\nContent-Length: 5\r\n\r\n", true},
		{"a bad trailer", "5\r\nhello\r\n0\r\nx trailer\r\n\r\n", false},
		{"leading zeros", "0000000000000005\r\nhello\r\n0\r\n\r\n", true},
		{"no size", "\r\n", false},
		{"a size that is no number", "5\r\nhello\r\nZZ\r\n", false},
		{"a negative size", "-1\r\n", false},
		{"a size with a prefix", "0x5\r\nhello\r\n0\r\n\r\n", false},
		{"a size with a sign", "+5\r\nhello\r\n0\r\n\r\n", false},
		{"a size beyond 64 bits", "FFFFFFFFFFFFFFFFF\r\n", false},
		{"a space before the size", " 5\r\nhello\r\n0\r\n\r\n", false},
		{"a space after the size", "5 \r\nhello\r\n0\r\n\r\n", false},
		{"line feeds alone", "5\nhello\n0\n\n", false},
		{"two carriage returns", "5\r\r\nhello\r\n0\r\n\r\n", false},
		{"no end of a chunk", "5\r\nhelloXX5\r\nhello\r\n0\r\n\r\n", false},
		{"a chunk that is longer than its size", "3\r\nhello\r\n0\r\n\r\n", false},
		{"a chunk that is cut off", fmt.Sprintf("%x\r\n", len(hidden)+100), false},
		{"a second request in a chunk", fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(hidden), hidden), true},
		{"a bad size after a second request", fmt.Sprintf("%x\r\n%s\r\nZZ\r\n", len(hidden), hidden), false},
	} {
		for _, path := range []string{queryPath, catalogPath} {
			text := outer(http.MethodPost, path) + "Transfer-Encoding: chunked\r\n\r\n" + body.text + hidden
			all = append(all, attack{name: "POST " + path + " with chunks: " + body.name, method: http.MethodPost,
				pipelined: body.whole, segments: []string{text}})
		}
	}
	return all
}

// endingBefore are the header lines after which the body, if there is one, has ended where the second request begins.
var endingBefore = []string{"Transfer-Encoding: CHUNKED", "Transfer-Encoding:\tchunked", "Transfer_Encoding: chunked"}

// framings say in several ways where the body ends. Only Transfer-Encoding: chunked alone is one that a server should
// take.
func framings(key string) (all []attack) {
	hidden := complete(key)
	for _, header := range []string{
		"Transfer-Encoding: xchunked", "Transfer-Encoding : chunked", "Transfer-Encoding:\x0bchunked",
		"Transfer-Encoding:\tchunked",
		"Transfer-Encoding: chunked, identity", "Transfer-Encoding: identity, chunked", "Transfer-Encoding: identity",
		"Transfer-Encoding: gzip, chunked", "Transfer-Encoding: chunked, chunked", `Transfer-Encoding: "chunked"`,
		"Transfer-Encoding: ",
		"Transfer-Encoding: chunked\r\nTransfer-Encoding: x", "Transfer-Encoding: x\r\nTransfer-Encoding: chunked",
		"Transfer-Encoding:\r\n chunked", "x: y\nTransfer-Encoding: chunked", "\x00Transfer-Encoding: chunked",
		"Transfer_Encoding: chunked",
		"Transfer-Encoding: chunked\x00", "Transfer-Encoding: chunked;a=b", "Transfer-Encoding: CHUNKED",
	} {
		body := "0\r\n\r\n" + hidden
		head := outer(http.MethodPost, catalogPath) + header + "\r\n"
		all = append(all,
			attack{name: fmt.Sprintf("%q", header), method: http.MethodPost, unreadable: true,
				pipelined: slices.Contains(endingBefore, header), segments: []string{head + "\r\n" + body}},
			attack{name: fmt.Sprintf("%q and a length", header), method: http.MethodPost, unreadable: true,
				segments: []string{withLength(head, body)}})
	}
	body := "0\r\n\r\n" + hidden
	before := withLength(outer(http.MethodPost, queryPath)+"Transfer-Encoding: chunked\r\n", body)
	after := fmt.Sprintf("%sContent-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n%s",
		outer(http.MethodPost, queryPath), len(body), body)
	short := outer(http.MethodPost, queryPath) + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" + body
	old := strings.Replace(outer(http.MethodPost, catalogPath), "HTTP/1.1", "HTTP/1.0", 1) +
		"Connection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n" + body
	for _, both := range []struct{ name, text string }{
		{"chunked before a length", before}, {"chunked after a length", after},
		{"chunked after a short length", short}, {"chunked in HTTP/1.0", old},
	} {
		all = append(all, attack{name: both.name, method: http.MethodPost, unreadable: true, segments: []string{both.text}})
	}
	return all
}

// lengths are Content-Length fields that readers understand in different ways.
func lengths(key string) (all []attack) {
	hidden := complete(key)
	for _, length := range []string{
		"0\r\nContent-Length: N", "N\r\nContent-Length: 0", "N\r\nContent-Length: N", "+N", "-N", "N, N", "N, 0", "0 N",
		"N\x00", "N.0", "0N", "\r\n N", "N\x0b", "0\nContent-Length: 400", "99999999999999999999999", "",
		fmt.Sprintf("0x%x", len(hidden)),
	} {
		length = strings.ReplaceAll(length, "N", fmt.Sprint(len(hidden)))
		all = append(all, attack{name: fmt.Sprintf("Content-Length: %q", length), method: http.MethodPost, unreadable: true,
			segments: []string{outer(http.MethodPost, catalogPath) + "Content-Length: " + length + "\r\n\r\n" + hidden}})
	}
	return all
}
