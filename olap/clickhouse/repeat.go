package clickhouse

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"go.opentelemetry.io/otel/propagation"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/runlens/runlens/olap/cost"
	"github.com/runlens/runlens/olap/trace"
)

// maxHeldBytes is the longest answer of the embedded engine that is held back until its end has come, so that the
// statement can run again when the connection dies amid it. ClickHouse itself holds back the first MiB.
const maxHeldBytes = 16 << 20

type readsKey struct{}

// A pool sends nothing once a row policy was found, and marks what only reads: Query, QueryRow, Select and Ping, which
// no caller uses to write. Over HTTP a repeater then runs it again once when its connection dies.
type pool struct {
	driver.Conn
	policies *policies
}

func reads(ctx context.Context) context.Context { return context.WithValue(ctx, readsKey{}, true) }

func (p pool) Query(ctx context.Context, query string, args ...any) (driver.Rows, error) {
	if err := p.policies.err(); err != nil {
		return nil, err
	}
	return p.Conn.Query(reads(ctx), query, args...)
}

func (p pool) QueryRow(ctx context.Context, query string, args ...any) driver.Row {
	if err := p.policies.err(); err != nil {
		return refusedRow{err}
	}
	return p.Conn.QueryRow(reads(ctx), query, args...)
}

func (p pool) Select(ctx context.Context, dest any, query string, args ...any) error {
	if err := p.policies.err(); err != nil {
		return err
	}
	return p.Conn.Select(reads(ctx), dest, query, args...)
}

func (p pool) Exec(ctx context.Context, query string, args ...any) error {
	if err := p.policies.err(); err != nil {
		return err
	}
	return p.Conn.Exec(ctx, query, args...)
}

func (p pool) PrepareBatch(
	ctx context.Context, query string, opts ...driver.PrepareBatchOption,
) (driver.Batch, error) {
	if err := p.policies.err(); err != nil {
		return nil, err
	}
	return p.Conn.PrepareBatch(ctx, query, opts...)
}

func (p pool) Ping(ctx context.Context) error {
	if err := p.policies.err(); err != nil {
		return err
	}
	return p.Conn.Ping(reads(ctx))
}

// A repeater sends statements over HTTP. One that only reads is sent again, once, when its connection died before it
// was answered. To dial waits for the engine's restart, so the second attempt meets the next engine.
type repeater struct {
	*cost.Transport
	embedded bool
}

// RoundTrip is part of http.RoundTripper.
func (r repeater) RoundTrip(request *http.Request) (*http.Response, error) {
	// The driver tells ClickHouse of a trace over the native protocol only.
	if oteltrace.SpanContextFromContext(request.Context()).IsValid() {
		request = request.Clone(request.Context())
		trace.Propagated.Inject(request.Context(), propagation.HeaderCarrier(request.Header))
	}
	response, err := r.send(request)
	if err != nil && request.Context().Err() != nil {
		// A connection that is made too late is kept for the next statement. There is none: the driver gives the transport
		// up and makes another one. Each such connection has a thread in ClickHouse.
		r.CloseIdleConnections()
	}
	if err == nil && response.StatusCode != http.StatusOK && response.Header.Get(exceptionCodeHeader) == "" {
		leaveOutPage(response)
	}
	return response, err
}

// exceptionCodeHeader is in every answer by which ClickHouse says that a statement failed.
const exceptionCodeHeader = "X-ClickHouse-Exception-Code"

// leaveOutPage leaves out what something else than ClickHouse answers, as a gateway does while that is started again:
// it may quote the address, with the parameters of the statement, and would stand in the error.
func leaveOutPage(response *http.Response) {
	response.Body.Close()
	response.Body = io.NopCloser(strings.NewReader("not by ClickHouse"))
	response.Header.Del("Content-Encoding")
	response.ContentLength = -1
}

func (r repeater) send(request *http.Request) (*http.Response, error) {
	if request.Context().Value(readsKey{}) == nil || request.Body != nil && request.GetBody == nil {
		return r.Transport.RoundTrip(request)
	}
	response, failure := r.attempt(request)
	if failure == nil || !connectionDied(request.Context(), failure) {
		return result(response, failure)
	}
	if response != nil {
		response.Body.Close()
	}
	again := request.Clone(request.Context())
	if request.GetBody != nil {
		var err error
		if again.Body, err = request.GetBody(); err != nil {
			return nil, err
		}
	}
	// The first attempt may still run, under the same query_id, where only the connection died.
	again.URL.RawQuery += "&replace_running_query=1"
	return result(r.attempt(again))
}

// attempt sends the request and holds its answer back. A response beside a failure was cut off; its body reads as it
// came, with the failure at its end.
func (r repeater) attempt(request *http.Request) (response *http.Response, failure error) {
	if response, failure = r.Transport.RoundTrip(request); failure != nil || !r.embedded {
		return response, failure
	}
	var held bytes.Buffer
	_, err := io.CopyN(&held, response.Body, maxHeldBytes)
	rest := io.Reader(response.Body)
	switch {
	case errors.Is(err, io.EOF): // it is whole
		err = nil
	case err != nil && saysException(held.Bytes()):
		rest, err = failing{err}, nil
	case err != nil:
		rest = failing{err}
	}
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(&held, rest), response.Body}
	return response, err
}

// result is what a RoundTripper returns: a response that was cut off is one.
func result(response *http.Response, failure error) (*http.Response, error) {
	if response != nil {
		return response, nil
	}
	return nil, failure
}

// saysException reports whether an answer that was cut off may end with an exception: ClickHouse cuts an answer off
// when the statement fails amid it.
func saysException(answer []byte) bool {
	const longest = 32 << 10
	return bytes.Contains(answer[max(0, len(answer)-longest):], []byte("DB::Exception"))
}

// connectionDied reports whether a statement failed because its connection did, and not because time is up, because
// dialing has waited for an engine in vain, or because of what it met instead.
func connectionDied(ctx context.Context, failure error) bool {
	var network net.Error
	late := errors.As(failure, &network) && network.Timeout()
	return ctx.Err() == nil && !late && !errors.Is(failure, errNoEngine) && !isPermanent(failure)
}

// failing is a reader that fails.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
