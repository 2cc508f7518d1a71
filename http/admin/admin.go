// Package admin serves what an operator needs of a running process: liveness, readiness, metrics, profiling and
// what the process adds. It belongs on an address of its own that callers of the API cannot reach.
package admin

import (
	"context"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// readyTimeout bounds one readiness check.
const readyTimeout = 5 * time.Second

// Content is what an admin address answers besides /healthz, which says that the process runs.
type Content struct {
	Ready   func(context.Context) error // of /readyz; what it returns is shown and should be a plain sentence
	Metrics []prometheus.Collector      // of /metrics, besides those of Go and of the process
	More    map[string]http.Handler     // by patterns of http.ServeMux

	// Private is like More, and not for everybody who reaches the address: it requires the token. Where there is none, a
	// loopback address answers it to programs on the same machine, and other addresses don't.
	Private map[string]http.Handler
}

// handler answers the content's paths and, if profiling is on, /debug/pprof. The command line is not served: it is no
// profile, and may contain what is not meant for everybody.
func handler(content Content, profiling bool) *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
		defer cancel()
		if err := content.Ready(ctx); err != nil {
			answer(w, http.StatusServiceUnavailable, err.Error())
			return
		}
		answer(w, http.StatusOK, "ready")
	})
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	registry.MustRegister(content.Metrics...)
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	if profiling {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
	for pattern, more := range content.More {
		mux.Handle(pattern, more)
	}
	return mux
}

func answer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	w.Write([]byte(text + "\n"))
}

// ownPages refuses what pages of other sites make a browser on this machine send. A name of theirs may lead to a
// loopback address.
func ownPages(next http.Handler) http.Handler {
	next = http.NewCrossOriginProtection().Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil || host != "localhost" && net.ParseIP(host) == nil {
			answer(w, http.StatusMisdirectedRequest, "name this address by its number, or set a token")
			return
		}
		next.ServeHTTP(w, r)
	})
}
