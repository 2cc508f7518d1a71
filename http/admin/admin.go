// Package admin serves what an operator needs of a running process: liveness, readiness, metrics, profiling and
// what the process adds. It belongs on an address of its own that callers of the API cannot reach.
package admin

import (
	"context"
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

	// Private is like More, and not for everybody who reaches the address: it always requires the token.
	Private map[string]http.Handler
}

// handler answers the content's paths and, if profiling is on, /debug/pprof. Profiles and what is private pass through
// protect. The command line is not served: it is no profile, and may contain what is not meant for everybody.
func handler(content Content, profiling bool, protect func(http.Handler) http.Handler) *http.ServeMux {
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
		mux.Handle("/debug/pprof/", protect(http.HandlerFunc(pprof.Index)))
		mux.Handle("/debug/pprof/profile", protect(http.HandlerFunc(pprof.Profile)))
		mux.Handle("/debug/pprof/symbol", protect(http.HandlerFunc(pprof.Symbol)))
		mux.Handle("/debug/pprof/trace", protect(http.HandlerFunc(pprof.Trace)))
	}
	for pattern, more := range content.More {
		mux.Handle(pattern, more)
	}
	for pattern, private := range content.Private {
		mux.Handle(pattern, protect(private))
	}
	return mux
}

func answer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	w.Write([]byte(text + "\n"))
}
