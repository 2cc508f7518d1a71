package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"syscall"

	httpapi "github.com/runlens/runlens/http"
	"github.com/runlens/runlens/http/conns"
)

// A listening is an address of the API, or of records alone.
type listening struct {
	connections *conns.Listener
	server      *httpapi.Server // nil before it is started
}

// listen opens an address of the API or of records, with bounds on what clients can use of it.
func (c serveCmd) listen(flag, address string, logger *slog.Logger) (*listening, error) {
	caps, err := c.connectionCaps(logger)
	if err != nil {
		return nil, err
	}
	connections, err := listenWithin(flag, address, caps, logger)
	if err != nil {
		return nil, err
	}
	return &listening{connections: connections}, nil
}

// start answers requests, with TLS if there is a certificate.
func (l *listening) start(config httpapi.Config, certificate *certificateFiles, failed chan<- error) (err error) {
	if l.server, err = httpapi.New(config); err != nil {
		return err
	}
	var listener net.Listener = l.connections
	if certificate != nil {
		listener = tls.NewListener(listener, certificate.config())
	}
	go func() { failed <- l.server.Serve(listener) }()
	return nil
}

// address is that which clients reach.
func (l *listening) address() string { return l.connections.Addr().String() }

// close finishes the requests in flight, until ctx is done.
func (l *listening) close(ctx context.Context) error {
	switch {
	case l == nil:
		return nil
	case l.server == nil:
		return l.connections.Close()
	}
	return l.server.Shutdown(ctx)
}

// listenWithin opens an address with caps on its connections. It says what to do where another program has it.
func listenWithin(flag, address string, caps conns.Caps, logger *slog.Logger) (*conns.Listener, error) {
	listener, err := net.Listen("tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s: %w, perhaps by another runlens; choose another port, 0 for a free one", flag, err)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	return conns.Limit(listener, caps, logger), nil
}

// listenLoopback opens an address for programs of one person on this machine. It refuses one that other hosts can
// reach.
func listenLoopback(address string, logger *slog.Logger) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, usageError{errors.New("--listen must be a loopback address such as 127.0.0.1:8765")}
	}
	return listenFew("--listen", address, logger)
}

// listenFew opens an address of which few use anything at once.
func listenFew(flag, address string, logger *slog.Logger) (net.Listener, error) {
	caps, err := fewCaps()
	if err != nil {
		return nil, err
	}
	return listenWithin(flag, address, caps, logger)
}
