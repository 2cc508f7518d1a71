package httpapi_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	httpapi "github.com/runlens/runlens/http"
	"github.com/runlens/runlens/http/conns"
)

// Bodies that are being received share a budget, without any key: who comes when it is used up shall come
// back, memory stays within it, and requests of the usual size are answered all the same.
func TestStalledBodiesAreBounded(t *testing.T) {
	const stalled, body, budget = 200, 1 << 20, 8 << 20
	s := serve(t, func(c *httpapi.Config) { c.MaxBodyBytes, c.BodyBytes = body, budget })
	key := s.reader()
	began, before := time.Now(), heap()
	// On a slow machine a body may come too slowly, for which its connection has a grace.
	late := func() bool { return time.Since(began) >= conns.Grace }
	var clients sync.WaitGroup
	answers := make(chan *http.Response, stalled)
	for range stalled {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.base, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(5 * time.Minute)) // to fail, instead of waiting for ever
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n",
			queryPath, body)
		clients.Go(func() {
			// All but the last byte; a server that refuses reads on for the client's sake.
			if _, err := io.WriteString(conn, strings.Repeat(" ", body-1)); err != nil && !late() {
				t.Error(err)
			}
		})
		go func() {
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err == nil {
				io.Copy(io.Discard, response.Body)
			}
			answers <- response
		}()
	}
	clients.Wait()
	s.post(key, valid).want(t, 200, "", "")
	// All but those that fit the budget are refused: a body of a MiB takes one of it, less what is free.
	refused := 0
	for range stalled - budget/body - 1 {
		response := <-answers
		if late() && (response == nil || response.StatusCode == 400) {
			continue
		}
		if response == nil {
			t.Fatal("a body is not answered")
		}
		if refused++; response.StatusCode != 429 || response.Header.Get("Retry-After") == "" || !response.Close {
			t.Errorf("a body that does not fit is answered %d, Retry-After %q, close %v",
				response.StatusCode, response.Header.Get("Retry-After"), response.Close)
		}
	}
	if refused == 0 {
		t.Error("no body is refused")
	}
	// Buffers double as they grow, so twice the budget, and per connection fasthttp's own buffers and what is free.
	if most := uint64(2*budget + stalled*(128<<10)); heap() > before+most {
		t.Errorf("the heap grew by %d KiB, at most %d were expected", (heap()-before)>>10, most>>10)
	}
}

// heap is how many bytes of memory are in use.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// What the header says is judged without waiting for the body.
func TestTheHeaderIsEnoughToRefuse(t *testing.T) {
	s := serve(t, nil)
	for name, headers := range map[string]string{
		"content type": "Content-Type: text/plain\r\nContent-Length: 100000",
		"encoding":     "Content-Type: application/json\r\nContent-Encoding: br\r\nContent-Length: 100000",
		"encodings": "Content-Type: application/json\r\nContent-Encoding: identity\r\nContent-Encoding: br\r\n" +
			"Content-Length: 100000",
		"too large": "Content-Type: application/json\r\nContent-Length: 100000000",
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", strings.TrimPrefix(s.base, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(20 * time.Second))
			// fasthttp takes the first 8 KiB before anything else.
			fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\n%s\r\n\r\n%s", queryPath, headers, strings.Repeat(" ", 8<<10))
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			if response.StatusCode != 400 || !response.Close {
				t.Errorf("got %d, close %v", response.StatusCode, response.Close)
			}
		})
	}
}
