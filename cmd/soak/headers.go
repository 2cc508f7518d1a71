package main

import (
	"net/http"
	"strings"
)

// headers are malformed outside of what frames the body, which is a second request.
func headers(key string) (all []attack) {
	hidden := complete(key)
	add := func(name, text string) {
		all = append(all, attack{name: name, method: http.MethodPost, unreadable: true, segments: []string{text}})
	}
	for _, field := range []struct{ name, text string }{
		{"two hosts", "Host: other\r\n"},
		{"a folded field", "x-folded: a\r\n b\r\n"},
		{"a folded field with a tab", "x-folded: a\r\n\tb\r\n"},
		{"NUL in a value", "x-nul: a\x00b\r\n"},
		{"NUL in a name", "x-\x00: a\r\n"},
		{"a carriage return in a value", "x-return: a\rb\r\n"},
		{"a line feed alone", "x-feed: a\n"},
		{"a line without a colon", "x-none\r\n"},
		{"a space in a name", "x y: z\r\n"},
		{"an empty name", ": z\r\n"},
		{"a long field", "x-long: " + strings.Repeat("a", 20<<10) + "\r\n"},
		{"a request after a carriage return", "x-end: a\r\n\rGET / HTTP/1.1\r\n"},
		{"a connection field that names others", "Connection: close, Content-Length, x-request-id\r\n"},
		{"an upgrade", "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"},
	} {
		add(field.name, withLength(outer(http.MethodPost, catalogPath)+field.text, hidden))
	}
	good := withLength(outer(http.MethodPost, catalogPath), hidden)
	head := strings.TrimSuffix(good, hidden)
	for _, change := range []struct{ name, old, new string }{
		{"no host", "Host: soak\r\n", ""},
		{"an empty host", "Host: soak", "Host:"},
		{"a host with a path", "Host: soak", "Host: soak/api"},
		{"a space before a field", "Host:", " Host:"},
		{"HTTP/1.0", " HTTP/1.1\r\n", " HTTP/1.0\r\nConnection: keep-alive\r\n"},
		{"HTTP/9.9", "HTTP/1.1", "HTTP/9.9"},
		{"no version", " HTTP/1.1", ""},
		{"two spaces in the target", " " + catalogPath, "  " + catalogPath},
		{"an absolute target", catalogPath, "http://other" + catalogPath},
		{"a target with a carriage return", catalogPath, catalogPath + "\rHTTP/1.1"},
		{"empty lines before it", "POST ", "\r\n\r\nPOST "},
	} {
		add(change.name, strings.Replace(head, change.old, change.new, 1)+hidden)
	}
	add("line feeds alone", strings.ReplaceAll(head, "\r\n", "\n")+hidden)
	add("no request line", "\x00\x01\x02\x03\r\n\r\n"+hidden)
	add("the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"+hidden)
	return all
}
