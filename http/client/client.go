package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

const (
	catalogPath = "/api/v1/analytics/catalog"
	queryPath   = "/api/v1/analytics/query"
)

// The bounds that hold where Config has 0.
const (
	DefaultTimeout          = 2 * time.Minute
	DefaultMaxWait          = 10 * time.Minute
	DefaultMaxResponseBytes = 32 << 20
)

// Config says which server is asked, and how patiently. URL and Key are required.
type Config struct {
	// URL is the server's address, such as https://analytics.example.com. Without a scheme it is http for
	// loopback addresses and https for all others.
	URL string
	// Key is an API key with the scope analytics:read, or ingest:write to push.
	Key string

	// HTTP sends the requests; nil for a client of its own. Redirects are never followed: they would send the key on.
	HTTP *http.Client
	// UserAgent names the caller in the server's logs; "runlens-go" if empty.
	UserAgent string
	// Timeout bounds one attempt, from connecting to the last byte; 0 is DefaultTimeout.
	Timeout time.Duration
	// MaxWait bounds the waits of one request between its attempts, all together and inclusive; 0 is DefaultMaxWait.
	// If it is negative nothing is sent twice.
	MaxWait time.Duration
	// MaxResponseBytes bounds the body of one answer after decompression, inclusive; 0 is DefaultMaxResponseBytes.
	MaxResponseBytes int64
	// OnWait is called before each wait; nil for nobody.
	OnWait func(Wait)
}

// A Wait is a pause before a request is sent again.
type Wait struct {
	For     time.Duration
	Attempt int   // the one that failed, from 1
	Cause   error // an *Error or a *ConnectionError
}

// A Client asks one server with one key. It is safe for concurrent use. Make it with New.
type Client struct {
	config  Config
	base    string
	http    http.Client
	reached atomic.Bool // the server has answered at least once
}

// New checks the configuration; it sends nothing.
func New(config Config) (*Client, error) {
	base, err := parseURL(config.URL)
	if err != nil {
		return nil, err
	}
	if config.Key == "" || strings.ContainsFunc(config.Key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("the API key is empty, or has characters that no key has")
	}
	if config.Timeout <= 0 {
		config.Timeout = DefaultTimeout
	}
	if config.MaxWait == 0 {
		config.MaxWait = DefaultMaxWait
	}
	if config.MaxResponseBytes <= 0 {
		config.MaxResponseBytes = DefaultMaxResponseBytes
	}
	if config.UserAgent == "" {
		config.UserAgent = "runlens-go"
	}
	c := &Client{config: config, base: base}
	if config.HTTP != nil {
		c.http = *config.HTTP
	} else {
		c.http.Transport = http.DefaultTransport.(*http.Transport).Clone()
	}
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c, nil
}

// parseURL is the address without a trailing slash.
func parseURL(text string) (string, error) {
	scheme := ""
	if !strings.Contains(text, "://") {
		scheme = "https://"
		host, _, _ := strings.Cut(text, "/")
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		if ip := net.ParseIP(strings.Trim(host, "[]")); host == "localhost" || ip != nil && ip.IsLoopback() {
			scheme = "http://"
		}
	}
	u, err := url.Parse(scheme + text)
	switch {
	case err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https":
		return "", fmt.Errorf("%q is no address such as http://127.0.0.1:8080", text)
	case u.User != nil:
		return "", errors.New("the address must not hold a user or a password; the API takes a key")
	case strings.ContainsAny(text, "?#"):
		return "", fmt.Errorf("%q must end with its path", text)
	}
	return strings.TrimRight(u.String(), "/"), nil
}

// URL is the server's address with its scheme and without a trailing slash.
func (c *Client) URL() string { return c.base }

// Catalog reads what can be asked. The error is an *Error, a *ConnectionError or the context's.
func (c *Client) Catalog(ctx context.Context) (*Catalog, error) {
	a, err := c.send(ctx, message{method: http.MethodGet, path: catalogPath})
	if err != nil {
		return nil, err
	}
	var catalog Catalog
	if err := json.Unmarshal(a.body, &catalog); err != nil {
		return nil, a.unreadable(err)
	}
	if len(catalog.Models) == 0 {
		return nil, a.unreadable(errors.New("it has no models"))
	}
	return &catalog, nil
}

// Query asks for one page. The error is an *Error, a *ConnectionError or the context's.
func (c *Client) Query(ctx context.Context, q Query) (*Response, error) {
	body, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	return c.QueryJSON(ctx, body)
}

// QueryJSON is Query with a request body that is sent as it is, whether it is valid or not.
func (c *Client) QueryJSON(ctx context.Context, body []byte) (*Response, error) {
	a, err := c.send(ctx, message{http.MethodPost, queryPath, body, "application/json", ""})
	if err != nil {
		return nil, err
	}
	response := Response{RequestID: a.requestID()}
	if err := json.Unmarshal(a.body, &response); err != nil {
		return nil, a.unreadable(err)
	}
	if len(response.Columns) == 0 || response.Rows == nil {
		return nil, a.unreadable(errors.New("it has no columns or no rows"))
	}
	for _, row := range response.Rows {
		if len(row) != len(response.Columns) {
			return nil, a.unreadable(fmt.Errorf("a row has %d values for %d columns", len(row), len(response.Columns)))
		}
	}
	return &response, nil
}
