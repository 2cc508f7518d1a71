package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// ErrNotHTTP is the error of a transfer to or from a server whose address is of the native protocol.
var ErrNotHTTP = errors.New("rows are sent over HTTP: give an address such as https://user@host:8443/database")

// A Transfer sends rows from one server to another, as they are stored.
type Transfer struct{ from, to *rawClient }

// NewTransfer returns a Transfer between two servers. ErrNotHTTP is the error of one that is not reached over HTTP.
func NewTransfer(from, to *Server) (t Transfer, err error) {
	if t.from, err = from.raw(); err == nil {
		t.to, err = to.raw()
	}
	return t, err
}

// Send runs a SELECT on the one server and has the other one insert its rows: what the one writes in ClickHouse's own
// format, the other one reads. It returns when the rows are acknowledged. After a failure some of them may be stored.
// insert is an INSERT INTO without a format.
func (t Transfer) Send(ctx context.Context, query, insert string) error {
	rows, err := t.from.send(ctx, url.Values{"query": {query}, "default_format": {"Native"}}, nil)
	if err != nil {
		return err
	}
	defer rows.Close()
	answer, err := t.to.send(ctx, url.Values{
		"query": {insert + " FORMAT Native"},
		// Each row is stored as it is, whatever its month and whatever was stored before.
		"optimize_on_insert": {"0"}, "max_partitions_per_insert_block": {"0"}, "insert_deduplicate": {"0"},
		"wait_end_of_query": {"1"},
	}, rows)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, answer)
	return errors.Join(err, answer.Close())
}

// A rawClient sends statements whose rows nobody looks at. Its connections are checked as those of the pool are.
type rawClient struct {
	http.Client
	options *clickhouse.Options
}

func (s *Server) raw() (*rawClient, error) {
	if s.options.Protocol != clickhouse.HTTP {
		return nil, ErrNotHTTP
	}
	transport := &http.Transport{TLSClientConfig: s.options.TLS, DisableCompression: true}
	if dial := s.options.DialContext; dial != nil {
		transport.DialContext = func(ctx context.Context, _, address string) (net.Conn, error) { return dial(ctx, address) }
	} else {
		transport.Proxy = http.ProxyFromEnvironment
	}
	sender, err := s.options.TransportFunc(transport)
	return &rawClient{http.Client{Transport: sender}, s.options}, err
}

// send returns the body of an answer that says that all is well.
func (c *rawClient) send(ctx context.Context, parameters url.Values, body io.Reader) (io.ReadCloser, error) {
	for name, value := range pinned {
		parameters.Set(name, fmt.Sprint(value))
	}
	parameters.Set("database", c.options.Auth.Database)
	address := url.URL{Scheme: "http", Host: c.options.Addr[0], Path: "/" + c.options.HttpUrlPath,
		RawQuery: parameters.Encode()}
	if c.options.TLS != nil {
		address.Scheme = "https"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address.String(), body)
	if err != nil {
		return nil, err
	}
	request.SetBasicAuth(c.options.Auth.Username, c.options.Auth.Password)
	response, err := c.Do(request)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err // not the address, which has the statement
		}
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		response.Body.Close()
		code, _ := strconv.Atoi(response.Header.Get(exceptionCodeHeader))
		return nil, &clickhouse.Exception{Code: int32(code), Message: response.Status}
	}
	return response.Body, nil
}
