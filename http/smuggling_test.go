package httpapi_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// prefetched is more than fasthttp reads of a body before the handler, which it takes off the connection itself.
const prefetched = 9000

// smuggled is a whole request, which a server must never read out of another one's body.
func smuggled(id string) string {
	return "GET " + catalogPath + " HTTP/1.1\r\nHost: x\r\nx-request-id: " + id + "\r\n\r\n"
}

// raw sends bytes on a connection of their own, ends its sending half, and returns the answers until the server closes
// it. A query that takes long is not answered then: its client is taken to be gone.
func (s *service) raw(t *testing.T, text string) []*http.Response {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	conn.(*net.TCPConn).CloseWrite()
	var answers []*http.Response
	method, _, _ := strings.Cut(text, " ")
	for reader := bufio.NewReader(conn); ; {
		response, err := http.ReadResponse(reader, &http.Request{Method: method})
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return answers
		}
		if err != nil {
			t.Fatalf("after %d answers: %v", len(answers), err)
		}
		if response.StatusCode == http.StatusContinue {
			continue
		}
		if _, err := io.Copy(io.Discard, response.Body); err != nil {
			t.Fatal(err)
		}
		answers, method = append(answers, response), "" // only the first request is known
	}
}

// Whatever way the end of a request is made doubtful, or its body left unread: what comes after is no request.
func TestNothingIsReadOutOfABody(t *testing.T) {
	s := serve(t, nil)
	inside := smuggled("smuggled")
	late := strings.Repeat("\r\n", prefetched/2) + inside
	head := func(method, path string, headers ...string) string {
		return method + " " + path + " HTTP/1.1\r\nHost: x\r\nx-request-id: first\r\n" + strings.Join(
			append(headers, "\r\n"), "\r\n")
	}
	length := func(n int) string { return fmt.Sprintf("Content-Length: %d", n) }
	const json = "Content-Type: application/json"
	for name, text := range map[string]string{
		"GET with a body":    head("GET", catalogPath, length(len(late))) + late,
		"HEAD with a body":   head("HEAD", catalogPath, length(len(late))) + late,
		"GET with chunks":    head("GET", catalogPath, "Transfer-Encoding: chunked") + "0\r\n\r\n" + inside,
		"no such path":       head("POST", "/api/v1/nothing", length(len(late))) + late,
		"method not allowed": head("PUT", queryPath, length(len(late))) + late,
		"unknown method":     head("BREW", queryPath, length(len(late))) + late,
		"content type":       head("POST", queryPath, length(len(late)), "Content-Type: text/plain") + late,
		"encoding":           head("POST", queryPath, length(len(late)), json, "Content-Encoding: gzip") + late,
		"form": head("POST", queryPath, length(len(late)), "Content-Type: multipart/form-data; "+
			"boundary=x") + late,
		"too large":               head("POST", queryPath, length(2<<20), json) + late,
		"no number of a chunk":    head("POST", queryPath, json, "Transfer-Encoding: chunked") + "zz\r\n" + inside,
		"chunk that is too short": head("POST", queryPath, json, "Transfer-Encoding: chunked") + "1\r\n" + inside,
		"bytes after the last chunk": head("POST", queryPath, json, "Transfer-Encoding: chunked") +
			"2\r\n{}\r\n0\r\n\r\n" + inside,
		"chunk extension with newline": head("POST", queryPath, json, "Transfer-Encoding: chunked") +
			"2;x\n\r\n{}\r\n0\r\n\r\n" + inside,
		"coding and length": head("POST", queryPath, json, "Transfer-Encoding: chunked", length(2)) +
			"0\r\n\r\n" + inside,
		"length and coding": head("POST", queryPath, json, length(2), "Transfer-Encoding: chunked") + "{}" +
			inside,
		"another coding": head("POST", queryPath, json, "Transfer-Encoding: xchunked") + "0\r\n\r\n" + inside,
		"identity": head("POST", queryPath, json, "Transfer-Encoding: identity", length(2)) + "{}" +
			inside,
		"two codings": head("POST", queryPath, json, "Transfer-Encoding: gzip, chunked") + "0\r\n\r\n" +
			inside,
		"a coding twice": head("POST", queryPath, json, "Transfer-Encoding: chunked",
			"Transfer-Encoding: chunked") + "0\r\n\r\n" + inside,
		"space before the colon": head("POST", queryPath, json, "Content-Length : 2") + "{}" + inside,
		"two lengths":            head("POST", queryPath, json, length(2), length(2)) + "{}" + inside,
		"signed length":          head("POST", queryPath, json, "Content-Length: +2") + "{}" + inside,
		"lengths in one line":    head("POST", queryPath, json, "Content-Length: 2, 2") + "{}" + inside,
		"huge length":            head("POST", queryPath, json, "Content-Length: 18446744073709551618") + "{}" + inside,
		"folded line":            head("GET", catalogPath, "X-Folded: a\r\n b") + inside,
		"folded length":          head("POST", queryPath, json, "Content-Length:\r\n 2") + "{}" + inside,
		"line feed alone":        head("GET", catalogPath, "X-A: b\nX-C: d") + inside,
		"NUL":                    head("GET", catalogPath, "X-A: b\x00c") + inside,
		"carriage return alone":  head("GET", catalogPath, "X-A: b\rX-C: d") + inside,
		"no colon":               head("GET", catalogPath, "X-A") + inside,
		"two hosts":              head("GET", catalogPath, "Host: y") + inside,
		"no host":                "GET " + catalogPath + " HTTP/1.1\r\nx-request-id: first\r\n\r\n" + inside,
		"no header":              "GET " + catalogPath + " HTTP/1.1\r\n\r\n" + inside,
		"another protocol":       "GET " + catalogPath + " HTTP/2.0\r\nHost: x\r\n\r\n" + inside,
		"chunks in HTTP/1.0": "POST " + queryPath + " HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" +
			"0\r\n\r\n" + inside,
		"control character in target": "GET " + catalogPath + "\x01 HTTP/1.1\r\nHost: x\r\n\r\n" + inside,
		"continue":                    head("PUT", queryPath, length(len(late)), "Expect: 100-continue") + late,
		"GET that continues":          head("GET", catalogPath, length(len(late)), "Expect: 100-continue") + late,
	} {
		t.Run(name, func(t *testing.T) {
			answers := s.raw(t, text)
			if len(answers) != 1 || answers[0].StatusCode < 400 || !answers[0].Close {
				t.Fatalf("%d answers, want one that refuses and closes: %v", len(answers), answers)
			}
			if answers[0].Header.Get("x-request-id") == "smuggled" {
				t.Error("the answer is to the request within")
			}
		})
	}
	// What is well-formed still shares a connection, so that the test above can fail.
	body := `{}`
	good := head("GET", catalogPath) + head("POST", queryPath, json, length(len(body))) + body + inside
	if answers := s.raw(t, good); len(answers) != 3 || answers[2].Header.Get("x-request-id") != "smuggled" {
		t.Errorf("%d answers to three good requests: %v", len(answers), answers)
	}
}

// Behind a proxy, strangers share connections: nobody gets the answer to another one's request.
func TestProxyGivesNobodyAForeignAnswer(t *testing.T) {
	s := serve(t, nil)
	target, err := url.Parse(s.base)
	if err != nil {
		t.Fatal(err)
	}
	reverse := httputil.NewSingleHostReverseProxy(target)
	reverse.Transport = &http.Transport{MaxConnsPerHost: 1} // all share one
	reverse.ErrorLog = nil
	proxy := httptest.NewServer(reverse)
	defer proxy.Close()
	client := &http.Client{Timeout: 20 * time.Second} // a server that takes requests for bodies waits for ever
	defer client.CloseIdleConnections()
	var victims sync.WaitGroup
	key := s.reader()
	request := func(method, path, id, body string, headers ...string) *http.Response {
		request, err := http.NewRequest(method, proxy.URL+path, strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return nil
		}
		request.Header.Set("x-request-id", id)
		for i := 0; i < len(headers); i += 2 {
			request.Header.Set(headers[i], headers[i+1])
		}
		response, err := client.Do(request)
		if err != nil {
			t.Error(err)
			return nil
		}
		io.Copy(io.Discard, response.Body)
		response.Body.Close()
		if got := response.Header.Get("x-request-id"); response.StatusCode != http.StatusBadGateway && got != id {
			t.Errorf("%s %s %s got the answer to %q", id, method, path, got)
		}
		return response
	}
	for i := range 25 {
		// What is smuggled takes the next request on the connection for its body, so that its answer goes to the victim.
		inside := fmt.Sprintf(
			"%sPOST %s HTTP/1.1\r\nHost: x\r\nx-request-id: smuggled-%d\r\nContent-Type: application/json\r\nContent-Length: "+
				"200\r\n\r\n",
			strings.Repeat("\r\n", prefetched/2), queryPath, i,
		)
		for j, attack := range []struct{ method, path, contentType string }{
			{"GET", catalogPath, ""}, {"POST", "/api/v1/nothing", ""}, {"PUT", queryPath, "application/json"},
			{"POST", queryPath, "text/plain"},
		} {
			victims.Go(func() {
				response := request("POST", queryPath, fmt.Sprintf("victim-%d-%d", i, j), valid, "Authorization", "Bearer "+key,
					"Content-Type", "application/json")
				// A proxy gives up on a request whose connection was closed under it.
				if response != nil && response.StatusCode != 200 && response.StatusCode != 429 &&
					response.StatusCode != http.StatusBadGateway {
					t.Errorf("the victim got %d", response.StatusCode)
				}
			})
			if response := request(attack.method, attack.path, fmt.Sprintf("attack-%d-%d", i, j), inside, "Content-Type",
				attack.contentType); response != nil &&
				response.StatusCode < 400 {
				t.Errorf("%s %s without a key got %d", attack.method, attack.path, response.StatusCode)
			}
		}
		victims.Wait()
	}
}
