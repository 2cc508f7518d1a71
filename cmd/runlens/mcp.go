package main

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/runlens/runlens/cmd/internal/assistant"
	"github.com/runlens/runlens/cmd/internal/profile"
	"github.com/runlens/runlens/http/client"
	"github.com/runlens/runlens/http/conns"
)

const (
	// mcpMaxWait is how long an assistant waits for the key's rate before it is told to try again.
	mcpMaxWait = time.Minute
	// mcpDrain is how long calls in flight may take when the server ends.
	mcpDrain = 5 * time.Second

	mcpPath         = "/mcp"
	mcpRequestBytes = 1 << 20
)

type mcpCmd struct {
	serverFlags
	Listen string `placeholder:"HOST:PORT" help:"@mcp_listen"`
}

func (mcpCmd) Help() string {
	return `Serves the Model Context Protocol: an assistant reads the catalog, queries a running server, ` +
		`and sees saved questions.
After 'runlens login' an assistant needs one line of configuration:
{"mcpServers": {"runlens": {"command": "runlens", "args": ["mcp"]}}}
While no server can be asked, the calls of the tools say why.

Example:
  runlens mcp
  runlens mcp --listen 127.0.0.1:8765`
}

func (c mcpCmd) Run(ctx context.Context, command *kong.Context, logger *slog.Logger, io streams) error {
	return interruptible(ctx, mcpDrain, func(ctx context.Context) error { return c.serve(ctx, command, logger, io) })
}

func (c mcpCmd) serve(ctx context.Context, command *kong.Context, logger *slog.Logger, io streams) error {
	asked, err := c.server(explicitFlags(command))
	if err != nil {
		return err
	}
	var listener net.Listener
	if c.Listen != "" {
		if listener, err = listenLoopback(c.Listen, logger); err != nil {
			return err
		}
		defer listener.Close()
	}
	to, err := client.New(client.Config{
		URL: asked.URL, Key: asked.Key, UserAgent: "runlens-mcp/" + version, MaxWait: mcpMaxWait, OnWait: reportWait(io.err),
	})
	if err != nil {
		return usageError{err}
	}
	server := assistant.New(ctx, assistant.Config{
		Client: to, Questions: profile.HomeOrNowhere(), Version: version, Now: time.Now,
		Unread: func(err error) { say(io.err, "%v", err) },
	})
	if listener != nil {
		fmt.Fprintf(io.err, "serving MCP at http://%s%s\n", listener.Addr(), mcpPath)
		return serveMCP(ctx, listener, server, asked.Key, logger)
	}
	return overStreams(ctx, server, io)
}

// overStreams serves one assistant until it closes the input and has its answers, or a signal comes. Calls that have no
// answer by mcpDrain after the signal get none.
func overStreams(ctx context.Context, server *mcp.Server, streams streams) error {
	ended := make(chan error, 1)
	go func() {
		ended <- server.Run(ctx, assistant.Answered{Transport: &mcp.IOTransport{
			Reader: io.NopCloser(streams.in), Writer: keepOpen{streams.out}}})
	}()
	err, came := awaited(ctx, ended, mcpDrain)
	if !came {
		return fmt.Errorf("interrupted; what was asked had no answer %v later", mcpDrain)
	}
	var malformed *json.SyntaxError
	switch {
	case ctx.Err() != nil || errors.Is(err, io.EOF):
		return nil
	case errors.As(err, &malformed) || errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("standard input has no message of the Model Context Protocol, which assistants send: %w", err)
	}
	return err
}

// keepOpen is a writer whose owner closes it.
type keepOpen struct{ io.Writer }

func (keepOpen) Close() error { return nil }

// serveMCP answers until ctx is done. Every user of the machine reaches the address, so callers show the key; and a
// page in a browser is kept out by its Origin and its Host.
func serveMCP(
	ctx context.Context, listener net.Listener, server *mcp.Server, key string, logger *slog.Logger,
) error {
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{Stateless: true, MaxRequestBodyBytes: mcpRequestBytes, PropagateRequestCancellation: true})
	mux := http.NewServeMux()
	mux.Handle(mcpPath, http.NewCrossOriginProtection().Handler(withKey(key, handler)))
	return serveUntil(ctx, conns.NewServer(mux, logger), listener, mcpDrain)
}

// serveUntil answers until ctx is done; then requests in flight have the time of drain.
func serveUntil(ctx context.Context, s *http.Server, listener net.Listener, drain time.Duration) error {
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.Background(), drain)
	defer cancel()
	if s.Shutdown(end) != nil {
		s.Close()
	}
	return nil
}

func withKey(key string, next http.Handler) http.Handler {
	want := sha256.Sum256([]byte(key))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		got := sha256.Sum256([]byte(token)) // of equal length, so that the comparison takes constant time
		if subtle.ConstantTimeCompare(got[:], want[:]) != 1 || !strings.EqualFold(scheme, "Bearer") {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "send the API key: Authorization: Bearer KEY", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}
