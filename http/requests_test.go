package httpapi_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	httpapi "github.com/runlens/runlens/http"
	"github.com/runlens/runlens/http/auth"
)

// Every request of the corpus over a socket: status, code and param, and for malformed ones that
// they are refused without a key, the others only with credentials (contract 4.18).
func TestCorpusIsRefused(t *testing.T) {
	s := serve(t, nil)
	key := s.reader()
	files, err := filepath.Glob("../testdata/requests/invalid/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no corpus: %v", err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var c struct {
			Rule, Code, Param, Body string
			Status                  int
			Malformed               bool
			Base64                  []byte
		}
		if err := json.Unmarshal(content, &c); err != nil {
			t.Fatal(err)
		}
		if c.Base64 != nil {
			c.Body = string(c.Base64)
		}
		t.Run(c.Rule, func(t *testing.T) {
			s.post(key, c.Body).want(t, c.Status, c.Code, c.Param)
			if c.Malformed {
				s.post("", c.Body).want(t, c.Status, c.Code, c.Param)
			} else {
				s.post("", c.Body).want(t, 401, "unauthorized", "")
			}
		})
	}
}

// Spec 5.2 and contract 4.10: what is no JSON body is refused before authentication.
func TestContentTypes(t *testing.T) {
	s := serve(t, nil)
	key := s.reader()
	for _, c := range []struct {
		name, contentType string
		ok                bool
	}{
		{"JSON", "application/json", true},
		{"with charset", "application/json; charset=utf-8", true},
		{"letter case", "Application/JSON;charset=UTF-8", true},
		{"missing", "", false},
		{"text", "text/plain", false},
		{"form", "application/x-www-form-urlencoded", false},
		{"another charset", "application/json; charset=latin1", false},
		{"another JSON", "application/problem+json", false},
		{"two types", "application/json, text/plain", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if a := s.post(key, valid, "Content-Type", "", "Content-Type", c.contentType); c.ok {
				a.want(t, 200, "", "")
			} else {
				a.want(t, 400, "invalid_query", "")
				s.post("", valid, "Content-Type", "", "Content-Type", c.contentType).want(t, 400, "invalid_query", "")
			}
		})
	}
	s.post(key, valid, "Content-Encoding", "gzip").want(t, 400, "invalid_query", "")
	s.post(key, valid, "Content-Encoding", "identity").want(t, 200, "", "")
}

// The answer to a body that is too large arrives, however it is sent.
func TestBodySize(t *testing.T) {
	const most = 1000
	s := serve(t, func(c *httpapi.Config) { c.MaxBodyBytes = most })
	key := s.reader()
	body := func(length int) string { return valid + strings.Repeat(" ", length-len(valid)) }
	s.post(key, body(most)).want(t, 200, "", "")
	for _, length := range []int{most + 1, 2 * most, 1 << 20, 5 << 20} {
		s.post("", body(length), "x-request-id", "big").want(t, 400, "invalid_query", "")
		// Without a length the body comes in chunks.
		request, err := http.NewRequest(http.MethodPost, s.base+queryPath, io.MultiReader(strings.NewReader(body(length))))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("x-request-id", "chunked")
		a := s.send(request)
		a.want(t, 400, "invalid_query", "")
		if a.Error.RequestID != "chunked" {
			t.Errorf("request id %q", a.Error.RequestID)
		}
	}
}

// Without a limit that counts, bodies are read as they come.
func TestAnyBodySize(t *testing.T) {
	s := serve(t, func(c *httpapi.Config) { c.MaxBodyBytes, c.BodyBytes = math.MaxInt, math.MaxInt64 })
	s.post(s.reader(), valid).want(t, 200, "", "")
	s.post(s.reader(), valid+strings.Repeat(" ", 1<<20)).want(t, 200, "", "")
}

// Spec 5.4: an invalid identifier is replaced, a valid one comes back, on every answer.
func TestRequestID(t *testing.T) {
	s := serve(t, nil)
	key := s.reader()
	for _, c := range []struct {
		id   string
		kept bool
	}{
		{"a", true}, {"A-Z.a_z:0/9=-", true}, {strings.Repeat("x", 64), true},
		{strings.Repeat("x", 65), false}, {"a b", false}, {"é", false}, {"a,b", false}, {"", false},
	} {
		for name, a := range map[string]answer{
			"query":   s.post(key, valid, "x-request-id", c.id),
			"refused": s.post("", valid, "x-request-id", c.id),
			"catalog": s.get(catalogPath, key, "x-request-id", c.id),
			"unknown": s.get("/api/v1/nothing", "", "x-request-id", c.id),
		} {
			got := a.header.Get("x-request-id")
			if (got == c.id) != c.kept || !c.kept && len(got) != 36 {
				t.Errorf("%s: %q came back as %q", name, c.id, got)
			}
		}
	}
}

// Contract 4.14: unknown routes and methods in the same envelope.
func TestRoutes(t *testing.T) {
	s := serve(t, nil)
	for _, c := range []struct {
		method, path string
		status       int
		code, allow  string
	}{
		{"GET", "/api/v1", 404, "not_found", ""},
		{"GET", "/api/v1/analytics", 404, "not_found", ""},
		{"POST", "/api/v1/analytics/queries", 404, "not_found", ""},
		{"GET", catalogPath + "/", 404, "not_found", ""},
		{"GET", strings.ToUpper(catalogPath), 404, "not_found", ""},
		{"GET", queryPath, 405, "method_not_allowed", "POST"},
		{"DELETE", queryPath, 405, "method_not_allowed", "POST"},
		{"POST", catalogPath, 405, "method_not_allowed", "GET, HEAD"},
		{"BREW", queryPath, 405, "method_not_allowed", "POST"},
		{"get", catalogPath, 405, "method_not_allowed", "GET, HEAD"},
		{"BREW", "/", 405, "method_not_allowed", "GET, HEAD"},
		{"BREW", "/api", 404, "not_found", ""},
		{"OPTIONS", catalogPath, 405, "method_not_allowed", "GET, HEAD"},
		{"GET", "/metrics", 404, "not_found", ""},
		{"GET", "/healthz", 404, "not_found", ""},
	} {
		request, err := http.NewRequest(c.method, s.base+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		a := s.send(request)
		if a.status != c.status || a.Error.Code != c.code || a.header.Get("Allow") != c.allow {
			t.Errorf("%s %s: %d %s, Allow %q; want %d %s, Allow %q", c.method, c.path, a.status, a.Error.Code,
				a.header.Get("Allow"), c.status, c.code, c.allow)
		}
	}
	request, err := http.NewRequest(http.MethodHead, s.base+catalogPath, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+s.reader())
	if a := s.send(request); a.status != 200 || len(a.body) != 0 {
		t.Errorf("HEAD: %d with %d bytes", a.status, len(a.body))
	}
}

// What never reaches a handler is answered in the envelope as well.
func TestUnreadableRequests(t *testing.T) {
	s := serve(t, nil)
	for name, text := range map[string]string{
		"headers too large": "GET " + catalogPath + " HTTP/1.1\r\nHost: x\r\nx-request-id: early\r\nX-Long: " +
			"" + strings.Repeat("x", 64<<10) + "\r\n\r\n",
		"no HTTP":          "hello\r\n\r\n",
		"length no number": "POST " + queryPath + " HTTP/1.1\r\nHost: x\r\nContent-Length: abc\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", strings.TrimPrefix(s.base, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := io.WriteString(conn, text); err != nil {
				t.Fatal(err)
			}
			request, err := http.NewRequest(http.MethodGet, s.base+"/", nil)
			if err != nil {
				t.Fatal(err)
			}
			response, err := http.ReadResponse(bufio.NewReader(conn), request)
			if err != nil {
				t.Fatal(err)
			}
			a := answer{status: response.StatusCode, header: response.Header}
			if a.body, err = io.ReadAll(response.Body); err != nil {
				t.Fatal(err)
			}
			s.check(request, response, &a)
			a.want(t, 400, "invalid_query", "")
		})
	}
}

// A body that ends before its length is malformed, and the server goes on.
func TestTruncatedBody(t *testing.T) {
	s := serve(t, nil)
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n%s",
		queryPath, valid)
	conn.(*net.TCPConn).CloseWrite()
	if response, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil && response.StatusCode != 400 {
		t.Errorf("answered %d", response.StatusCode)
	}
	conn.Close()
	s.post(s.key("acme", auth.ScopeAnalyticsRead), valid).want(t, 200, "", "")
}

// Contract 2: the largest valid query fits, each of its characters written as an escaped surrogate pair.
func TestTheLargestQueryFits(t *testing.T) {
	s := serve(t, nil)
	value := `"` + strings.Repeat(`\ud83d\ude00`, 200) + `"`
	filter := `{"member":"agent_id","op":"in","values":[` + strings.TrimSuffix(strings.Repeat(value+",", 50), ",") + `]}`
	body := strings.TrimSuffix(valid, "}") + `,"filters":[` + strings.TrimSuffix(strings.Repeat(filter+",", 8), ",") + `]}`
	if len(body) < 960_000 || len(body) > 1<<20 {
		t.Fatalf("the body has %d bytes", len(body))
	}
	s.post(s.reader(), body).want(t, 200, "", "")
}

// White space around the value of a field is no part of it (RFC 9110, section 5.5), also a tab.
func TestTabsAroundFieldsDoNotCount(t *testing.T) {
	s := serve(t, nil)
	text := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nAuthorization:\t Bearer %s\t\r\nx-request-id:\ttabbed \t\r\n"+
		"Content-Type:\tapplication/json\r\nContent-Encoding: identity\t\r\nContent-Length: %d\r\n\r\n%s",
		queryPath, s.reader(), len(valid), valid)
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() // not before the answer, however long the query takes
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || answer.StatusCode != 200 || answer.Header.Get("x-request-id") != "tabbed" {
		t.Errorf("answered %v, %v", answer, err)
	}
}
