package doctor_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/runlens/runlens/olap/clickhouse"
	"github.com/runlens/runlens/olap/doctor/finding"
)

// The largest query passes ClickHouse, and no proxy that has nginx's usual limit of a request's address.
func TestParametersOfTheLargestQuery(t *testing.T) {
	node, err := url.Parse("http://" + theNode(t).Addr("http"))
	if err != nil {
		t.Fatal(err)
	}
	passed := httputil.NewSingleHostReverseProxy(node)
	short := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.RequestURI) > 8<<10 {
			http.Error(w, "Request-URI Too Large", http.StatusRequestURITooLong)
			return
		}
		passed.ServeHTTP(w, r)
	}))
	defer short.Close()
	store, err := clickhouse.Open(t.Context(), clickhouse.Config{
		URL: strings.Replace(short.URL, "://", "://exact:x@", 1) + "/" + database, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	found := about(patient(store).Examine(t.Context()), "parameters")
	expect(t, found, finding.Problem, "status 414", "large_client_header_buffers 4 1m")
	for _, scheme := range []string{"http", "clickhouse"} {
		found := about(patient(as(t, scheme, "exact", nil)).Examine(t.Context()), "parameters")
		expect(t, found, finding.OK, "arrive", "")
	}
}
