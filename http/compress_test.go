package httpapi_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/runlens/runlens/olap/olaptest"
)

// exchange sends a request on a connection of its own and returns the answer as it was written.
func (s *service) exchange(
	method, path, key, body string, headers ...string,
) (response *http.Response, content, rest []byte) {
	s.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.base, "http://"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer %s\r\n", method, path, key)
	for _, header := range headers {
		fmt.Fprintf(conn, "%s\r\n", header)
	}
	fmt.Fprintf(conn, "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	reader := bufio.NewReader(conn)
	if response, err = http.ReadResponse(reader, &http.Request{Method: method}); err != nil {
		s.t.Fatal(err)
	}
	if content, err = io.ReadAll(response.Body); err != nil {
		s.t.Fatal(err)
	}
	if rest, err = io.ReadAll(reader); err != nil {
		s.t.Fatal(err)
	}
	return response, content, rest
}

// unpack undoes a content coding.
func unpack(t *testing.T, coding string, content []byte) []byte {
	t.Helper()
	var reader io.Reader = bytes.NewReader(content)
	var err error
	switch coding {
	case "gzip":
		reader, err = gzip.NewReader(reader)
	case "zstd":
		reader, err = zstd.NewReader(reader, zstd.WithDecoderMaxWindow(8<<20))
	}
	if err != nil {
		t.Fatal(err)
	}
	if content, err = io.ReadAll(reader); err != nil {
		t.Fatal(err)
	}
	return content
}

// RFC 9110, section 12.5.3: the coding is one that the client accepts, the one that it likes best, and never a
// surprise.
func TestContentCoding(t *testing.T) {
	s := serve(t, nil)
	key := s.reader()
	_, plain, _ := s.exchange(http.MethodGet, catalogPath, key, "")
	for accepts, want := range map[string]string{
		"": "", "identity": "", "*": "", "br": "", "deflate, br": "", "*;q=0": "", "gzip;q=0": "", "gzip;q=0, *": "",
		"zstd;q=0.0,gzip;q=0": "", "gzip": "gzip", "zstd": "zstd", "gzip, deflate, br, zstd": "gzip",
		"gzip;q=0.5, zstd": "zstd", "zstd;q=0.1, gzip;q=0.2": "gzip", "br;q=1.0, gzip;q=0.8, *;q=0.1": "gzip",
		"identity;q=0.5, gzip": "gzip", "identity, gzip;q=0.5": "", "*;q=0, zstd": "zstd", ",": "", ";q=1": "",
		"br\r\nAccept-Encoding: gzip;q=0.5\r\nAccept-Encoding: zstd": "zstd", // several lines are one list
	} {
		response, content, rest := s.exchange(http.MethodGet, catalogPath, key, "", "Accept-Encoding: "+accepts)
		if got := response.Header.Get("Content-Encoding"); got != want {
			t.Errorf("%q gets %q, want %q", accepts, got, want)
		}
		if response.ContentLength != int64(len(content)) || len(rest) > 0 {
			t.Errorf("%q: Content-Length %d of %d bytes, %d after them", accepts, response.ContentLength, len(content),
				len(rest))
		}
		if want != "" && len(content) >= len(plain)/2 {
			t.Errorf("%q: %d bytes of %d", accepts, len(content), len(plain))
		}
		if !bytes.Equal(unpack(t, want, content), plain) {
			t.Errorf("%q: other content", accepts)
		}
		if response.Header.Get("Vary") != "Accept-Encoding" || response.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%q: %v", accepts, response.Header)
		}
	}
	response, content, rest := s.exchange(http.MethodHead, catalogPath, key, "", "Accept-Encoding: gzip")
	if response.StatusCode != 200 || response.Header.Get("Content-Encoding") != "gzip" || len(content)+len(rest) > 0 {
		t.Errorf("HEAD: %v, %d bytes", response.Header, len(content)+len(rest))
	}
}

// A page of many rows is compressed, one of few is not, and many clients at once read their own answers.
func TestQueryCoding(t *testing.T) {
	store := olaptest.OpenStore(t)
	s := serveOn(t, store, nil)
	var records olaptest.Records
	at := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	for i := range 600 {
		who := fmt.Sprintf("person.%04d@test.invalid", i)
		records.Runs = append(records.Runs, olaptest.Run{Organization: "acme", ID: olaptest.ShortID(i),
			CreatedAt: at, UpdatedAt: at, Kind: "agent", Status: "FAILED", Identifier: &who})
	}
	olaptest.Load(t, store.Conn(), records)
	key := s.reader()
	page := func(limit int) string {
		return strings.TrimSuffix(valid, "}") + fmt.Sprintf(`,"dimensions":["user_identifier"],"limit":%d}`, limit)
	}
	response, content, _ := s.exchange(http.MethodPost, queryPath, key, page(1), "Accept-Encoding: zstd, gzip")
	if response.Header.Get("Content-Encoding") != "" || response.Header.Get("Vary") != "Accept, Accept-Encoding" ||
		!bytes.HasPrefix(content, []byte("{")) {
		t.Errorf("one row: %v %s", response.Header, content)
	}
	var clients sync.WaitGroup
	for i := range 8 {
		coding, limit := []string{"gzip", "zstd"}[i%2], 499+i/2%2
		clients.Go(func() {
			for range 5 {
				response, content, rest := s.exchange(http.MethodPost, queryPath, key, page(limit), "Accept-Encoding: "+coding)
				if response.StatusCode == http.StatusTooManyRequests {
					continue // four at once are allowed
				}
				if response.Header.Get("Content-Encoding") != coding || response.ContentLength != int64(len(content)) ||
					len(rest) > 0 {
					t.Errorf("%s: %d %v", coding, response.StatusCode, response.Header)
					continue
				}
				rows := decode[struct{ Rows [][]any }](t, unpack(t, coding, content)).Rows
				if len(rows) != limit || rows[limit-1][0] != fmt.Sprintf("person.%04d@test.invalid", limit-1) {
					t.Errorf("%s: %d rows, want %d", coding, len(rows), limit)
				}
			}
		})
	}
	clients.Wait()
}

// RFC 9110, section 13.1.2: weak comparison, lists, and "*".
func TestCatalogTag(t *testing.T) {
	s := serve(t, nil)
	key := s.reader()
	packed, _, _ := s.exchange(http.MethodGet, catalogPath, key, "", "Accept-Encoding: zstd")
	tag := s.get(catalogPath, key).header.Get("ETag")
	if !strings.HasPrefix(tag, `W/"`) || tag != packed.Header.Get("ETag") {
		t.Errorf("the tag is %s", tag)
	}
	strong := strings.TrimPrefix(tag, "W/")
	for have, status := range map[string]int{
		tag: 304, strong: 304, "*": 304, `"other", ` + tag: 304, `"a","b",` + strong + `,"c"`: 304,
		`"other"`: 200, strings.Trim(strong, `"`): 200, "": 200, strong[:len(strong)-2] + `"`: 200,
		"\"other\"\r\nIf-None-Match: " + tag: 304, tag + "\r\nIf-None-Match: \"other\"": 304,
		tag + "\r\nCache-Control: max-age=0\r\nCache-Control: no-cache": 200,
	} {
		response, content, rest := s.exchange(http.MethodGet, catalogPath, key, "", "If-None-Match: "+have,
			"Accept-Encoding: gzip")
		if response.StatusCode != status || (len(content) == 0) != (status == 304) || len(rest) > 0 {
			t.Errorf("%s: %d, %d bytes, want %d", have, response.StatusCode, len(content), status)
		}
		for name, want := range map[string]string{"ETag": tag, "Cache-Control": "private, no-cache",
			"Vary": "Accept-Encoding"} {
			if got := response.Header.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", have, name, got, want)
			}
		}
		if response.Header.Get("x-request-id") == "" || response.Header.Get("RateLimit") == "" {
			t.Errorf("%s: %v", have, response.Header)
		}
	}
	// What else a condition may be made of does not count, and what a caller has is no credential.
	if a := s.get(catalogPath, key, "If-Modified-Since", "Mon, 02 Jan 2040 15:04:05 GMT"); a.status != 200 {
		t.Errorf("If-Modified-Since: %d", a.status)
	}
	s.get(catalogPath, "", "If-None-Match", tag).want(t, 401, "unauthorized", "")
	if a := s.get(catalogPath, s.key("acme"), "If-None-Match", tag); a.status != 403 || a.header.Get("ETag") != "" ||
		a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("without the scope: %d %v", a.status, a.header)
	}
}
