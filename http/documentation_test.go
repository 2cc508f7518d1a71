package httpapi_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	httpapi "github.com/runlens/runlens/http"
)

// The document is served as it is, and the page gets everything that it names from its own address.
func TestDocumentation(t *testing.T) {
	mux := http.NewServeMux()
	for pattern, handler := range httpapi.Documentation() {
		mux.Handle(pattern, handler)
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	get := func(path string) (string, http.Header) {
		t.Helper()
		response, err := http.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != http.StatusOK || len(body) == 0 {
			t.Fatalf("%s: %v, %d, %d bytes", path, err, response.StatusCode, len(body))
		}
		return string(body), response.Header
	}
	content, err := os.ReadFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	served, header := get("/openapi.yaml")
	if served != string(content) || header.Get("Content-Type") != "application/yaml" {
		t.Errorf("the document: %v, %d bytes of %d", header, len(served), len(content))
	}
	page, header := get("/docs") // and on to /docs/
	if !strings.HasPrefix(header.Get("Content-Type"), "text/html") ||
		!strings.Contains(header.Get("Content-Security-Policy"), "default-src 'self'") {
		t.Errorf("the page: %v", header)
	}
	if !strings.Contains(page, `"swaggerJsonUrl":"../openapi.yaml"`) ||
		!strings.Contains(page, "supportedSubmitMethods: []") {
		t.Errorf("the page:\n%s", page)
	}
	links := regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(page, -1)
	if len(links) < 3 {
		t.Fatalf("the page has the links %q", links)
	}
	for _, link := range links {
		get("/docs/" + link[1]) // an address of another host is not found here
	}
	if response, err := http.Post(server.URL+"/docs/", "text/plain", nil); err != nil ||
		response.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: %v, %v", response, err)
	}
}
