package clickhouse_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httputil"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/runlens/runlens/olap/clickhouse"
	"github.com/runlens/runlens/olap/clickhouse/clickhousetest"
)

// stripped sends what a proxy leaves that has a list of the parameters of ClickHouse, as chproxy has. A list without
// the version of the format leaves answers that the driver can't read.
func stripped(kept ...string) func(*http.Request, http.RoundTripper) (*http.Response, error) {
	return func(r *http.Request, node http.RoundTripper) (*http.Response, error) {
		parameters := r.URL.Query()
		for name := range parameters {
			if !slices.Contains(kept, name) {
				parameters.Del(name)
			}
		}
		r.URL.RawQuery = parameters.Encode()
		return node.RoundTrip(r)
	}
}

// cached answers statements of the same text as the first of them, whatever their settings are.
func cached() func(*http.Request, http.RoundTripper) (*http.Response, error) {
	var mu sync.Mutex
	answers := map[string][]byte{}
	return func(r *http.Request, node http.RoundTripper) (*http.Response, error) {
		mu.Lock()
		defer mu.Unlock()
		var body []byte
		if r.Body != nil {
			var err error
			if body, err = io.ReadAll(r.Body); err != nil {
				return nil, err
			}
		}
		statement := r.URL.Query().Get("query") + string(body)
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		if answer, ok := answers[statement]; ok {
			return http.ReadResponse(bufio.NewReader(bytes.NewReader(answer)), r)
		}
		response, err := node.RoundTrip(r)
		if err == nil && response.StatusCode == http.StatusOK && strings.HasPrefix(statement, "SELECT") {
			answers[statement], err = httputil.DumpResponse(response, true)
		}
		return response, err
	}
}

// An insert fails where a view does, as that which counts rows, whatever a profile or the address says of such errors.
func TestInsertsFailWithTheirViews(t *testing.T) {
	left, _ := twoNodes(t)
	database := store(t, map[*node]string{left: tableA})
	left.Do(t, "CREATE TABLE "+database+".counts (n UInt64, CONSTRAINT never CHECK n = 0) ENGINE = MergeTree ORDER BY n",
		"CREATE MATERIALIZED VIEW "+database+".counting TO "+database+".counts AS SELECT n FROM "+database+".runs")
	server, err := clickhouse.Open(t.Context(), clickhouse.Config{
		URL: "http://" + clickhousetest.NodeUser + "@" + left.Addr("http") + "/" + database +
			"?materialized_views_ignore_errors=1",
	})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	if err := server.Conn().Exec(t.Context(), "INSERT INTO runs VALUES (1)"); err == nil {
		t.Error("a row is acknowledged that was not counted")
	}
}

// What answers for ClickHouse from a cache, or takes settings out of statements, is refused, also if it comes later.
func TestWhatStandsBetween(t *testing.T) {
	left, _ := twoNodes(t)
	database := store(t, map[*node]string{left: tableA})
	for name, test := range map[string]struct {
		between func(*http.Request, http.RoundTripper) (*http.Response, error)
		want    error
	}{
		"a list of parameters": {
			stripped("query", "database", "default_format", "compress", "client_protocol_version", "wait_end_of_query"),
			clickhouse.ErrStripped,
		},
		"a shorter list": {stripped("query", "database", "default_format", "compress"), clickhouse.ErrStripped},
		"a cache":        {cached(), clickhouse.ErrCached},
	} {
		t.Run(name, func(t *testing.T) {
			b := byRequest(t)
			b.reach(left)
			b.between = test.between
			for _, database := range []string{database, "not_made_yet"} {
				if _, _, err := through(t, b, database); !errors.Is(err, test.want) {
					t.Errorf("the start with %s ends with %v, want %v", database, err, test.want)
				}
			}
			b.between = nil
			server, log, err := through(t, b, database)
			if err != nil {
				t.Fatal(err)
			}
			b.between = test.between
			b.cut()
			for range 3 {
				if err = server.Conn().Ping(t.Context()); err != nil {
					break
				}
				b.cut()
			}
			if !errors.Is(err, test.want) || !strings.Contains(log.String(), test.want.Error()) {
				t.Errorf("%v, and the log says %q", err, log)
			}
		})
	}
}
