package clickhouse

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/google/uuid"
)

const (
	// displayName is the header in which every answer of ClickHouse has the display name of its node.
	displayName = "X-ClickHouse-Server-Display-Name"
	// meetings is how often a node is asked for that has answered a statement and is not known.
	meetings = 16
)

// An httpGuard sends the statements of one pooled connection.
//
//  1. A new connection is asked for the identity of its node, with the credentials of the statement that needs it and
//     with a setting that has to arrive, before it carries anything else.
//  2. Every answer must have the display name of a node that was found to share the store: a balancer that reads HTTP
//     sends each request elsewhere. Another node is asked for its identity. Until it is known to share the store its
//     answer is held back, and whoever wrote there gets an error.
//
// Behind a forward proxy, and without keep-alive, only the second is done.
type httpGuard struct {
	http.RoundTripper
	transport *http.Transport
	nodes     *nodes
}

type (
	dialFunc     func(ctx context.Context, network, addr string) (net.Conn, error)
	statementKey struct{} // has the *http.Request for which a connection is made
)

// unanswered is the failure of a node to say who it is. What it answers instead is the answer to the statement: that
// the password is wrong, or that it has too much to do.
type unanswered struct{ response *http.Response }

func (u *unanswered) Error() string {
	return "ClickHouse does not say which node it is: " + u.response.Status
}

func (n *nodes) guardHTTP(options *clickhouse.Options) {
	n.sent = uuid.NewString()
	n.statement = identify(options.Auth.Database, "getSetting('log_comment') = "+quoted(n.sent))
	inner := options.TransportFunc
	options.TransportFunc = func(transport *http.Transport) (http.RoundTripper, error) {
		if transport.TLSClientConfig == nil {
			transport.DialContext = n.asking(transport, dialElsewhere)
		} else {
			transport.DialTLSContext = n.asking(transport, overTLS(transport.TLSClientConfig, dialElsewhere))
		}
		sender, err := inner(transport)
		return httpGuard{sender, transport, n}, err
	}
}

// CloseIdleConnections lets the driver close the pooled connection.
func (g httpGuard) CloseIdleConnections() { g.transport.CloseIdleConnections() }

// RoundTrip is part of http.RoundTripper.
func (g httpGuard) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx := context.WithValue(request.Context(), statementKey{}, request)
	response, err := g.RoundTripper.RoundTrip(request.WithContext(ctx))
	if err == nil {
		if err = g.admit(ctx, request, response); err != nil {
			response.Body.Close()
		}
	}
	var instead *unanswered
	switch {
	case errors.As(err, &instead):
		return instead.response, nil
	case err != nil:
		return nil, err
	}
	return response, nil
}

// admit returns nil for an answer of a node that shares the store, and for what no node has answered.
func (g httpGuard) admit(ctx context.Context, request *http.Request, response *http.Response) error {
	name := response.Header.Get(displayName)
	if name == "" && response.StatusCode != http.StatusOK {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	for range meetings {
		if g.nodes.knows(name) {
			return nil
		}
		answer, err := g.transport.RoundTrip(g.nodes.question(ctx, request))
		if err != nil {
			return err
		}
		if err := g.nodes.meet(answer); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: %q answers a statement, and is not to be found again", ErrOtherNode, name)
}

func (n *nodes) knows(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.names[name]
}

// question is a request for the identity of a node, with the credentials of another request.
func (n *nodes) question(ctx context.Context, like *http.Request) *http.Request {
	request := like.Clone(ctx)
	request.Method, request.Body, request.GetBody = http.MethodGet, nil, nil
	request.ContentLength, request.TransferEncoding = 0, nil
	for _, name := range []string{"Accept-Encoding", "Content-Encoding", "Content-Type"} {
		request.Header.Del(name)
	}
	request.URL.RawQuery = url.Values{"query": {n.statement}, "default_format": {"TabSeparated"},
		"wait_end_of_query": {"1"}, "log_comment": {n.sent}}.Encode()
	return request
}

// meet reads the answer to a question, and checks it.
func (n *nodes) meet(answer *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswerBytes))
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		answer.Body = io.NopCloser(bytes.NewReader(text))
		return &unanswered{answer}
	}
	name, arrived, _ := strings.Cut(string(bytes.TrimSuffix(text, []byte("\n"))), "\t")
	if err == nil {
		err = n.check(name)
	}
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if arrived != "1" {
		return n.refuse(ErrStripped)
	}
	n.names[answer.Header.Get(displayName)] = true
	return nil
}

// asking returns dial with a question on every new connection.
func (n *nodes) asking(transport *http.Transport, dial dialFunc) dialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		statement := ctx.Value(statementKey{}).(*http.Request)
		if err != nil || proxied(transport, statement) {
			return conn, err
		}
		again := false
		err = within(ctx, conn, func() (err error) {
			again, err = n.ask(conn, n.question(ctx, statement))
			return err
		})
		if err == nil && again {
			return conn, nil
		}
		conn.Close()
		if err != nil {
			return nil, err
		}
		return dial(ctx, network, addr)
	}
}

// ask sends the question on the connection. It reports whether the connection may be used again.
func (n *nodes) ask(conn net.Conn, question *http.Request) (again bool, err error) {
	if err := question.Write(conn); err != nil {
		return false, err
	}
	reader := bufio.NewReader(conn)
	answer, err := http.ReadResponse(reader, question)
	if err != nil {
		return false, err
	}
	err = n.meet(answer)
	return !answer.Close && reader.Buffered() == 0, err
}

func proxied(transport *http.Transport, request *http.Request) bool {
	if transport.Proxy == nil {
		return false
	}
	proxy, err := transport.Proxy(request)
	return proxy != nil || err != nil
}

// overTLS returns dial with a TLS handshake, as a transport would do it.
func overTLS(config *tls.Config, dial dialFunc) dialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		secure := tls.Client(conn, ofServer(config, addr))
		if err := within(ctx, conn, func() error { return secure.HandshakeContext(ctx) }); err != nil {
			conn.Close()
			return nil, err
		}
		return secure, nil
	}
}

// ofServer returns a configuration of TLS in which the server has a name: else that in its address.
func ofServer(config *tls.Config, addr string) *tls.Config {
	own := config.Clone()
	if own.ServerName == "" {
		own.ServerName, _, _ = net.SplitHostPort(addr)
	}
	return own
}
