package httpapi_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	httpapi "github.com/runlens/runlens/http"
)

// Strangers fill no log: of each kind of refusal before authentication a few are logged one by one, the others counted
// in lines of their own, and none is forgotten, nor in the metrics. Requests with a key are logged one by one.
func TestStrangersFillNoLog(t *testing.T) {
	s := serve(t, nil)
	key := s.reader()
	const each = 100
	long := strings.Repeat("M", 15_800)
	requests := map[string]string{
		"unauthorized":  "GET " + catalogPath + " HTTP/1.1\r\nHost: x\r\n\r\n",
		"invalid_query": "GET / HTTP/9.9\r\nHost: x\r\n\r\n",
		"not_found":     long + " /nothing HTTP/1.1\r\nHost: x\r\n\r\n",

		"method_not_allowed": long + " " + catalogPath + " HTTP/1.1\r\nHost: x\r\n\r\n",
	}
	before := len(s.log.String())
	for code, request := range requests {
		status := 0
		for range each {
			for _, response := range s.raw(t, request) {
				status = response.StatusCode
			}
		}
		if status < 400 || status > 405 {
			t.Errorf("%s: %d", code, status)
		}
	}
	for range each {
		request, err := http.NewRequest(http.MethodPost, s.base+queryPath, strings.NewReader("{"))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if got := s.post(key, `{"model":"nobody"}`); got.status != 400 {
			t.Fatal(got.status)
		}
	}
	s.close()
	log := s.log.String()[before:]
	single, counted, authenticated, seconds := map[string]int{}, map[string]int{}, 0, map[string]int{}
	for line := range strings.Lines(log) {
		var entry struct {
			Time, Msg, Code, Method string
			More                    int
			Key                     string `json:"key_id"`
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatal(err)
		}
		if len(line) > 1000 {
			t.Errorf("a line of %d bytes: %.100s", len(line), line)
		}
		switch {
		case entry.Key != "":
			authenticated++
		case entry.Msg == "request":
			single[entry.Code]++
			seconds[entry.Code+entry.Time[:len("2006-01-02T15:04:05")]]++
			if strings.HasPrefix(entry.Method, "M") {
				t.Errorf("a method of a stranger: %.100s", entry.Method)
			}
		default:
			counted[entry.Code] += entry.More
		}
	}
	for code := range requests {
		want := each
		if code == "invalid_query" {
			want = 2 * each
		}
		if single[code]+counted[code] != want {
			t.Errorf("%s: %d logged and %d counted of %d", code, single[code], counted[code], want)
		}
	}
	for second, n := range seconds {
		if n > 20 { // two of our seconds touch one of the clock's
			t.Errorf("%d lines in %s", n, second)
		}
	}
	if authenticated != each {
		t.Errorf("%d of %d requests with a key are logged", authenticated, each)
	}
}

// A caller who ignores the rate of its key fills no log either. What is logged and counted is all that was refused, and
// says whose key it was.
func TestCallersBeyondTheirRateFillNoLog(t *testing.T) {
	const rate, beyond = 5, 400
	s := serve(t, func(c *httpapi.Config) { c.RatePerMinute = rate })
	key := s.reader()
	before := len(s.log.String())
	for range rate + beyond {
		s.post(key, `{"model":"nobody"}`)
	}
	s.close()
	lines, counted := 0, 0
	for line := range strings.Lines(s.log.String()[before:]) {
		var entry struct {
			Limit string
			More  int
			Key   string `json:"key_id"`
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatal(err)
		}
		if entry.Limit != "rate" || entry.Key == "" {
			continue
		}
		if lines++; entry.More == 0 {
			counted++
		}
		counted += entry.More
	}
	if counted != beyond || lines > beyond/2 {
		t.Errorf("%d of %d requests are accounted for, in %d lines", counted, beyond, lines)
	}
}

// A client that resets its connection in the middle of a request is no fault of the server.
func TestAResetIsNoFault(t *testing.T) {
	s := serve(t, nil)
	for range 5 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.base, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHo"); err != nil {
			t.Fatal(err)
		}
		conn.(*net.TCPConn).SetLinger(0) // so that Close resets it
		conn.Close()
	}
	for deadline := time.Now().Add(time.Minute); strings.Count(s.log.String(), `"msg":"request"`) < 5; {
		if time.Now().After(deadline) {
			t.Fatalf("not all requests are logged: %s", s.log)
		}
		<-time.After(time.Millisecond)
	}
	if log := s.log.String(); strings.Contains(log, "internal_error") || strings.Contains(log, `"level":"ERROR"`) {
		t.Error(log)
	}
}

// A request is counted by its own method and path, and by nobody's where its header can't be read.
func TestUnreadRequestsAreOfNoRoute(t *testing.T) {
	metrics := httpapi.NewMetrics()
	s := serve(t, func(c *httpapi.Config) { c.Metrics = metrics })
	large := " HTTP/1.1\r\nHost: x\r\nX-Large: " + strings.Repeat("x", 20_000) + "\r\n\r\n"
	requests := []struct{ text, method, route string }{
		{"GARBAGE\r\n\r\n", "other", "other"},
		{"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", "other", "other"}, // as of a client that expects TLS
		{"GET  HTTP/1.1\r\n\r\n", "other", "other"},
		{"GET /docs" + large, "other", "other"},
		{"GET /docs HTTP/1.1\r\nHo", "other", "other"},
		{"GET /docs HTTP/1.1\r\n\r\n", "GET", "/docs"}, // lacks a Host
		{"POST " + queryPath + " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" +
			"Transfer-Encoding: chunked\r\n\r\nzz\r\n", "POST", queryPath},
	}
	for _, r := range requests {
		before := len(s.log.String())
		if answers := s.raw(t, r.text); len(answers) != 1 || answers[0].StatusCode != 400 {
			t.Errorf("%.40q was answered with %v", r.text, answers)
		}
		if want := fmt.Sprintf(`"method":%q,"route":%q,"status":400,`, r.method, r.route); !strings.Contains(
			s.log.String()[before:], want) {
			t.Errorf("%.40q is logged as %s, want %s", r.text, s.log.String()[before:], want)
		}
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counted := map[string]float64{}
	for _, family := range families {
		if family.GetName() == "runlens_http_requests_total" {
			for _, m := range family.GetMetric() {
				counted[m.GetLabel()[0].GetValue()] += m.GetCounter().GetValue()
			}
		}
	}
	if want := map[string]float64{"other": 5, "/docs": 1, queryPath: 1}; !maps.Equal(counted, want) {
		t.Errorf("counted %v, want %v", counted, want)
	}
}
