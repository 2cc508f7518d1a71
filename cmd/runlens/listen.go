package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"syscall"

	"github.com/runlens/runlens/http/conns"
)

// listen opens an address of the API or of records, with bounds on what clients can use of it.
func (c serveCmd) listen(flag, address string, logger *slog.Logger) (*conns.Listener, error) {
	caps, err := c.connectionCaps(logger)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, cannotListen(flag, err)
	}
	return conns.Limit(listener, caps, logger), nil
}

// cannotListen says what to do where another program has the address.
func cannotListen(flag string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s: %w, perhaps by another runlens; choose another port, 0 for a free one", flag, err)
	}
	return fmt.Errorf("%s: %w", flag, err)
}

// secure puts TLS over the API's listener if a certificate is given.
func (a *app) secure(c serveCmd, logger *slog.Logger) (err error) {
	if a.listener = a.connections; c.TLSCert == "" {
		return nil
	}
	if a.certificate, err = openCertificate(c.TLSCert, c.TLSKey, logger); err == nil {
		a.listener = tls.NewListener(a.connections, a.certificate.config())
	}
	return err
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
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, cannotListen(flag, err)
	}
	return conns.Limit(listener, caps, logger), nil
}
