package httpapi

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/runlens/runlens/http/conns"
	"github.com/runlens/runlens/http/limit"
	"github.com/runlens/runlens/olap/query"
)

// freeBodyBytes is how much of a body may be held without a part of Config.BodyBytes. Nearly all requests are
// smaller, so they are answered even while others use all of it.
const freeBodyBytes = 16 << 10

// A body is what was read of a request's body. It uses a part of the budget until release.
type body struct {
	bytes  []byte
	budget limit.Share
	full   error // of a body for which the budget has no space
	taken  int64
}

// errBodyTooLarge is the cause of a body of more bytes than allowed.
var errBodyTooLarge = errors.New("the body is too large")

// release gives the memory back. It may be called again.
func (b *body) release() {
	b.budget.Give(b.taken)
	b.bytes, b.taken = nil, 0
}

// readBody reads a JSON body of at most MaxBodyBytes (inclusive). It decides by the header what it can. The caller
// releases the body, also after an error.
func (s *Server) readBody(c *fiber.Ctx) (*body, error) {
	b := &body{budget: s.bodies, full: limited(limitBodies, messageTooMany, conns.Grace)}
	if encoding := fieldOf(c, fiber.HeaderContentEncoding); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return b, malformed("the body is encoded")
	}
	if !isJSON(c.Get(fiber.HeaderContentType)) {
		return b, malformed("the content type is not JSON")
	}
	err := b.receive(c, s.MaxBodyBytes)
	if errors.Is(err, errBodyTooLarge) {
		err = malformed("the body is larger than " + strconv.Itoa(s.MaxBodyBytes) + " bytes")
	}
	return b, err
}

// receive reads a body of at most so many bytes (inclusive), or returns errBodyTooLarge. The buffer grows only with
// what has arrived, whatever length the header promises.
func (b *body) receive(c *fiber.Ctx, most int) error {
	x := exchangeOf(c)
	if x.framing.length > int64(most) {
		return errBodyTooLarge
	}
	stream := c.Context().RequestBodyStream()
	if stream == nil {
		stream = bytes.NewReader(c.Request().Body())
	}
	for {
		if err := b.grow(most); err != nil {
			return err
		}
		n, err := stream.Read(b.bytes[len(b.bytes):cap(b.bytes)])
		b.bytes = b.bytes[:len(b.bytes)+n]
		switch {
		case len(b.bytes) > most:
			return errBodyTooLarge
		case errors.Is(err, io.EOF) && cut(c, x.framing, len(b.bytes)):
			return malformed("the body is cut off")
		case errors.Is(err, io.EOF):
			x.bodyEnded = true
			return nil
		case err != nil:
			return malformed("read the body: " + err.Error())
		}
	}
}

// cut reports whether a body of which so many bytes were received ended with its connection. fasthttp doesn't tell that
// from the end of the body.
func cut(c *fiber.Ctx, f framing, received int) bool {
	if f.chunked {
		return conns.Gone(c.Context().Conn())
	}
	return int64(received) < f.length
}

// grow makes space for a body of at most so many bytes (inclusive) that fills its buffer.
func (b *body) grow(most int) error {
	if len(b.bytes) < cap(b.bytes) {
		return nil
	}
	size := max(2*cap(b.bytes), bytes.MinRead)
	if size > most {
		size = most + 1 // one byte more than allowed shows that a body is too large
	}
	if more := int64(size-freeBodyBytes) - b.taken; more > 0 {
		if !b.budget.Take(more) {
			return b.full
		}
		b.taken += more
	}
	b.bytes = append(make([]byte, 0, size), b.bytes...)
	return nil
}

// checkSyntax and parse let large bodies wait for each other, so that requests of the usual size never wait
// for a flood of them.
func (s *Server) checkSyntax(body []byte) error {
	defer s.inTurn(body)()
	return query.CheckSyntax(body)
}

func (s *Server) parse(body []byte) (query.Query, error) {
	defer s.inTurn(body)()
	return query.Parse(body)
}

// inTurn waits until no more large bodies are parsed than there are processors.
func (s *Server) inTurn(body []byte) (end func()) {
	if len(body) <= freeBodyBytes {
		return func() {}
	}
	s.large <- struct{}{}
	return func() { <-s.large }
}

func malformed(reason string) error {
	return &query.Error{Code: query.InvalidQuery, Reason: reason}
}

// isJSON reports whether a content type is JSON in UTF-8, the only encoding JSON has.
func isJSON(contentType string) bool {
	mediaType, parameters, err := mime.ParseMediaType(contentType)
	if err != nil || mediaType != fiber.MIMEApplicationJSON {
		return false
	}
	charset, given := parameters["charset"]
	return !given || strings.EqualFold(charset, "utf-8")
}

// closeUnread ends the connection after the answer, so that what is left of the request is never read as
// another one.
func closeUnread(request *fasthttp.RequestCtx) {
	request.Response.Header.SetConnectionClose()
	conns.LeaveUnread(request.Conn())
}
