package conns

import (
	"log/slog"
	"net/http"
	"time"
)

const (
	serverHeaderTimeout  = 10 * time.Second
	serverReadTimeout    = time.Minute
	serverIdleTimeout    = 2 * time.Minute
	serverMaxHeaderBytes = 16 << 10
)

// NewServer returns a server of net/http for a Listener, which needs all these time-outs to know what a connection
// does. There is none for an answer: a Listener bounds how long a client may take to receive it, and a handler bounds
// its own work.
func NewServer(handler http.Handler, logger *slog.Logger) *http.Server {
	return &http.Server{
		Handler: handler, ReadHeaderTimeout: serverHeaderTimeout, ReadTimeout: serverReadTimeout,
		IdleTimeout: serverIdleTimeout, MaxHeaderBytes: serverMaxHeaderBytes,
		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
}
