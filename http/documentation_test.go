package httpapi_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	httpapi "github.com/runlens/runlens/http"
)

// pagesOfDocs are the pages of the documentation, with a word that each has.
var pagesOfDocs = map[string]string{
	"/docs": `id="api"`, "/docs/records": "parent_run_id", "/docs/errors": "range_too_large",
	"/docs/changelog": "Catalog 1.0",
}

// The document is served as it is. Pages load what they show from their own address, and all that they link to is
// there; nothing that stands in a page may run.
func TestDocumentation(t *testing.T) {
	s := serve(t, nil)
	content, err := os.ReadFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	served := s.get("/openapi.yaml", "")
	if string(served.body) != string(content) || served.header.Get("Content-Type") != "application/yaml" {
		t.Errorf("the document: %v, %d bytes of %d", served.header, len(served.body), len(content))
	}
	answers := map[string]answer{}
	for page, word := range pagesOfDocs {
		a := s.get(page, "")
		if answers[page] = a; !strings.Contains(string(a.body), word) ||
			a.header.Get("Content-Type") != "text/html; charset=utf-8" {
			t.Errorf("%s: %d %v without %s", page, a.status, a.header, word)
		}
		policy := a.header.Get("Content-Security-Policy")
		if !strings.HasPrefix(policy, "default-src 'none'; ") || strings.Contains(policy, "unsafe") ||
			regexp.MustCompile(`(?i)<style|<script>|\sstyle=|\son[a-z]+=`).Match(a.body) {
			t.Errorf("%s may run what stands in it: %s", page, policy)
		}
		links := regexp.MustCompile(`(src|href)="([^"]*)"`).FindAllStringSubmatch(string(a.body), -1)
		if len(links) < 7 {
			t.Errorf("%s has the links %q", page, links)
		}
		for _, link := range links {
			to, err := url.Parse(link[2])
			if err != nil {
				t.Fatal(err)
			}
			if to.IsAbs() && link[1] == "href" && strings.HasPrefix(link[2], "https://github.com/runlens/runlens/") {
				continue
			}
			target := path.Join(path.Dir(page), to.Path)
			if to.IsAbs() || to.Host != "" || s.get(target, "").status != http.StatusOK {
				t.Errorf("%s links to %s", page, link[2])
			}
		}
	}
	for code := range refusals { // where the header Link of an error leads to
		if !strings.Contains(string(answers["/docs/errors"].body), `id="`+code+`"`) {
			t.Errorf("the page of errors has no id %s", code)
		}
	}
	for _, id := range []string{"agent", "run", "attribution"} {
		if !strings.Contains(string(answers["/docs/records"].body), `id="`+id+`"`) {
			t.Errorf("the page of records has no id %s", id)
		}
	}
}

// Documents are packed where the client likes it, named by a tag, and have the methods GET and HEAD alone. Who reads
// them leaves no line in the log.
func TestDocumentsAreCached(t *testing.T) {
	s := serve(t, nil)
	const bundle = "/docs/assets/swagger-ui-bundle.js"
	plain, content, _ := s.exchange(http.MethodGet, bundle, "", "")
	packed, small, _ := s.exchange(http.MethodGet, bundle, "", "", "Accept-Encoding: gzip")
	if string(unpack(t, "gzip", small)) != string(content) || packed.ContentLength != int64(len(small)) ||
		len(small) > len(content)/3 {
		t.Errorf("%d bytes packed, %d not", len(small), len(content))
	}
	tag := plain.Header.Get("ETag")
	for name, want := range map[string]string{"ETag": tag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding",
		"X-Content-Type-Options": "nosniff"} {
		if got := packed.Header.Get(name); got != want || got == "" {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	again, rest, _ := s.exchange(http.MethodGet, bundle, "", "", "If-None-Match: "+tag)
	if again.StatusCode != http.StatusNotModified || len(rest) > 0 {
		t.Errorf("with its tag: %d, %d bytes", again.StatusCode, len(rest))
	}
	head, rest, after := s.exchange(http.MethodHead, bundle, "", "")
	if head.StatusCode != 200 || head.ContentLength != int64(len(content)) || len(rest)+len(after) > 0 {
		t.Errorf("HEAD: %d, length %d, %d bytes", head.StatusCode, head.ContentLength, len(rest)+len(after))
	}
	for _, method := range []string{"POST", "PUT", "BREW"} {
		refused, _, _ := s.exchange(method, "/docs", "", "")
		if refused.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d", method, refused.StatusCode)
		}
	}
	for path, want := range map[string]string{"/": "docs", "/docs/": "../docs"} {
		moved, _, _ := s.exchange(http.MethodGet, path, "", "")
		if moved.StatusCode != http.StatusTemporaryRedirect || moved.Header.Get("Location") != want {
			t.Errorf("%s: %d %v", path, moved.StatusCode, moved.Header)
		}
	}
	for _, unknown := range []string{"/docs/x", "/docs/assets/", "/docs/assets/x.js", "/openapi.yaml/"} {
		s.get(unknown, "").want(t, 404, "not_found", "")
	}
	if log := s.log.String(); strings.Contains(log, `"status":200`) || strings.Contains(log, `"status":30`) {
		t.Errorf("the log has readers of documents:\n%s", log)
	}
}

// One address gets only so many documents in a minute, and keys are answered all the while. Behind a proxy callers are
// told apart.
func TestDocumentsAreLimited(t *testing.T) {
	s := serve(t, func(c *httpapi.Config) { c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")} })
	key := s.reader()
	ask := func(address string) answer { return s.get("/docs/assets/docs.css", "", "X-Forwarded-For", address) }
	for range 120 {
		if a := ask("192.0.2.1"); a.status != 200 {
			t.Fatal(a.status)
		}
	}
	a := ask("192.0.2.1")
	a.want(t, 429, "rate_limited", "")
	if a.header.Get("x-runlens-reason") != "documentation" || a.header.Get("Retry-After") == "" {
		t.Errorf("%v", a.header)
	}
	s.post(key, valid).want(t, 200, "", "")
	// Addresses of one IPv6 network are one, and all together get 1,200.
	for i := range 1200 - 120 {
		if a := ask(fmt.Sprintf("2001:db8:0:%x::%x", i/120, i%120)); a.status != 200 {
			t.Fatalf("%d: %d", i, a.status)
		}
		if i == 120 {
			ask("2001:db8:0:0::ffff").want(t, 429, "rate_limited", "")
		}
	}
	ask("198.51.100.7").want(t, 429, "rate_limited", "")
	s.post(key, valid).want(t, 200, "", "")
}
