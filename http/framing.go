package httpapi

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

// Where a proxy and a server disagree on where a request ends, the rest of it becomes another client's
// request. So what RFC 9112 forbids or leaves to taste is refused here, although fasthttp would read it:
//
//  1. Every line of the header ends with CRLF, has a name of token characters directly before its colon, and
//     has no control character. No line is folded.
//  2. There is exactly one Host and at most one Content-Length, of digits only.
//  3. The only transfer coding is chunked, once, in HTTP/1.1, and never with a Content-Length.
//
// The connection is closed after a request that is refused, one whose body was not read to its end, and one
// with a chunked body: bytes after those are never read as a request.

// A framing says how long the body of a request is.
type framing struct {
	length  int64 // of Content-Length; 0 without one
	chunked bool
}

var (
	errRequestLine = errors.New("the request line is malformed")
	errHeaderLine  = errors.New("a header line is malformed")
	errHost        = errors.New("there is not exactly one Host")
	errLength      = errors.New("Content-Length is malformed or repeated")
	errCoding      = errors.New("the transfer coding is not chunked alone")
)

// maxLengthDigits keeps a Content-Length within 63 bits.
const maxLengthDigits = 18

// whiteSpace around the value of a field is no part of it (RFC 9110, section 5.5). fasthttp takes the spaces away.
const whiteSpace = " \t"

// fieldOf is the value of the first field of a name; empty without one.
func fieldOf(c *fiber.Ctx, name string) string { return strings.Trim(c.Get(name), whiteSpace) }

// listFields are the fields that are lists and are read as one value.
var listFields = []string{fiber.HeaderAccept, fiber.HeaderAcceptEncoding, fiber.HeaderCacheControl,
	fiber.HeaderContentEncoding, fiber.HeaderIfNoneMatch, "Tracestate"}

// joinLists makes one line of a list that came as several: they are the same (RFC 9110, section 5.3).
func joinLists(header *fasthttp.RequestHeader) {
	for _, name := range listFields {
		if lines := header.PeekAll(name); len(lines) > 1 {
			list := bytes.Join(lines, []byte(", "))
			header.Del(name) // to set it replaces the first line alone
			header.SetBytesV(name, list)
		}
	}
}

// framingOf reads how long a request's body is, or says why nobody can know.
func framingOf(header *fasthttp.RequestHeader) (framing, error) {
	protocol := string(header.Protocol())
	if protocol != "HTTP/1.1" && protocol != "HTTP/1.0" || !isToken(header.Method()) || !isTarget(header.RequestURI()) {
		return framing{}, errRequestLine
	}
	var f framing
	hosts, lengths, codings := 0, 0, 0
	for rest := header.RawHeaders(); ; {
		line, after, found := bytes.Cut(rest, []byte("\r\n"))
		if !found {
			return framing{}, errHeaderLine
		}
		if rest = after; len(line) == 0 {
			break
		}
		name, value, found := bytes.Cut(line, []byte(":"))
		value = bytes.Trim(value, whiteSpace)
		if !found || !isToken(name) || !isFieldValue(value) {
			return framing{}, errHeaderLine
		}
		switch {
		case bytes.EqualFold(name, []byte("Host")):
			hosts++
		case bytes.EqualFold(name, []byte("Content-Length")):
			lengths++
			length, err := strconv.ParseUint(string(value), 10, 63)
			if err != nil || len(value) > maxLengthDigits || value[0] == '+' {
				return framing{}, errLength
			}
			f.length = int64(length)
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			codings++
			f.chunked = bytes.EqualFold(value, []byte("chunked"))
		}
	}
	switch {
	case hosts != 1:
		return framing{}, errHost
	case lengths > 1:
		return framing{}, errLength
	case codings > 1, codings == 1 && (!f.chunked || lengths > 0 || protocol != "HTTP/1.1"):
		return framing{}, errCoding
	}
	return f, nil
}

// isToken reports whether text is a token of RFC 9110, section 5.6.2.
func isToken(text []byte) bool {
	return len(text) > 0 && !slices.ContainsFunc(text, func(c byte) bool {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		return !letter && (c < '0' || c > '9') && bytes.IndexByte([]byte("!#$%&'*+-.^_`|~"), c) < 0
	})
}

// isTarget reports whether text is visible ASCII: what else a target may contain comes escaped.
func isTarget(text []byte) bool {
	return len(text) > 0 && !slices.ContainsFunc(text, func(c byte) bool { return c <= ' ' || c >= 0x7f })
}

// isFieldValue reports whether text has no control character but the tab.
func isFieldValue(text []byte) bool {
	return !slices.ContainsFunc(text, func(c byte) bool { return c < ' ' && c != '\t' || c == 0x7f })
}
