package httpapi

import (
	"net/netip"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/runlens/runlens/http/limit"
)

// The documentation is for everybody who reaches the API's address, without a key. It stands on paths that the
// specification does not name.

// docsMoved are the paths that lead to the first page: a person may open the server's address alone. They are relative,
// for a proxy that serves them below a path of its own.
var docsMoved = map[string]string{"/": "docs", docsPath + "/": ".." + docsPath}

const (
	docsPath = "/docs" // of its first page, and the route of all of them in metrics

	// docsPolicy lets a page load, ask and run only what comes from its own address, and nothing that stands in the page.
	docsPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

	// What is asked of the documentation in any docsWindow, by one address and by all of them. A page with all that it
	// shows takes 8 requests; all of them together send at most 30 MB a second, packed 8.
	docsPerAddress = 120
	docsForAll     = 1200
	docsWindow     = time.Minute
)

// A docsLimit bounds requests for documentation, so that strangers take only so much from clients with a key.
type docsLimit struct {
	perAddress *limit.Keyed
	all        *limit.Window
}

func newDocsLimit() docsLimit {
	return docsLimit{limit.NewKeyed(docsPerAddress, docsWindow), limit.NewWindow(docsForAll, docsWindow)}
}

// take admits a request of an address, or says after how long one may be admitted. While nobody is admitted, no window
// is made for an address: strangers have any number of them.
func (l docsLimit) take(from netip.Addr, now time.Time) (admitted bool, wait time.Duration) {
	if l.all.Full(now) {
		return l.all.Take(now)
	}
	if network, err := from.Prefix(64); err == nil && from.Is6() {
		from = network.Addr()
	}
	if admitted, state := l.perAddress.Take(from.String(), now); !admitted {
		return false, state.Reset
	}
	return l.all.Take(now)
}

// routeDocs adds the routes of the documentation.
func (s *Server) routeDocs() error {
	all, err := documents()
	if err != nil {
		return err
	}
	for path, d := range all {
		s.app.Get(path, func(c *fiber.Ctx) error { return s.getDocument(c, d) })
	}
	for path, to := range docsMoved {
		s.app.Get(path, func(c *fiber.Ctx) error { return c.Redirect(to, fiber.StatusTemporaryRedirect) })
	}
	s.documents = all
	return nil
}

// getDocument answers with a document, or with 304 where the caller has it.
func (s *Server) getDocument(c *fiber.Ctx, d *document) error {
	if admitted, wait := s.docs.take(s.callerAddress(c), time.Now()); !admitted {
		return limited(limitDocs, messageTooMany, wait)
	}
	c.Set(fiber.HeaderCacheControl, "no-cache")
	if unchanged(c, d.tag) {
		return nil
	}
	c.Set(fiber.HeaderContentType, d.mediaType)
	c.Set(fiber.HeaderContentSecurityPolicy, docsPolicy)
	c.Set(fiber.HeaderXContentTypeOptions, "nosniff")
	c.Set(fiber.HeaderReferrerPolicy, "no-referrer")
	content := d.plain
	if d.packed != nil && c.AcceptsEncodings(codingNone, codingGzip) == codingGzip {
		c.Set(fiber.HeaderContentEncoding, codingGzip)
		content = d.packed
	}
	c.Context().Response.SetBodyRaw(content) // without a copy
	return nil
}
