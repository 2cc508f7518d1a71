package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/google/uuid"
)

const (
	catalogPath = "/api/v1/analytics/catalog"
	queryPath   = "/api/v1/analytics/query"

	// answerPatience is how long an answer is waited for: the deadline and what it may take to report it.
	answerPatience = deadline + 5*time.Second
)

// A client sends requests with one key, over connections that are kept.
type client struct {
	base, key string
	http      *http.Client
}

// newClient returns a client that keeps its connections. Without a key it sends no credential.
func newClient(address, key string) *client {
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	return &client{"http://" + address, key, &http.Client{Transport: transport, Timeout: answerPatience}}
}

// hasty returns a client like c that opens a connection for every request.
func (c *client) hasty() *client {
	transport := &http.Transport{DisableKeepAlives: true}
	return &client{c.base, c.key, &http.Client{Transport: transport, Timeout: answerPatience}}
}

// An answer is a response and what it must be held against.
type answer struct {
	status  int
	header  http.Header
	body    []byte
	sentID  string // x-request-id of the request; empty when the request had none that is valid
	toHead  bool   // has no body
	sent    time.Time
	arrived time.Time
}

func (a answer) took() time.Duration { return a.arrived.Sub(a.sent) }

// send sends a request with an identifier of its own and reads the whole response.
func (c *client) send(ctx context.Context, method, path string, body []byte) (answer, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	a := answer{sentID: uuid.NewString(), sent: time.Now()}
	request.Header.Set("x-request-id", a.sentID)
	if c.key != "" {
		request.Header.Set("Authorization", "Bearer "+c.key)
	}
	if method == http.MethodPost {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(request)
	if err != nil {
		return a, err
	}
	defer response.Body.Close()
	a.status, a.header = response.StatusCode, response.Header
	a.body, err = io.ReadAll(response.Body)
	a.arrived = time.Now()
	return a, err
}

// query sends one question.
func (c *client) query(ctx context.Context, body []byte) (answer, error) {
	return c.send(ctx, http.MethodPost, queryPath, body)
}

// catalog reads the catalog.
func (c *client) catalog(ctx context.Context) ([]model, error) {
	a, err := c.send(ctx, http.MethodGet, catalogPath, nil)
	if err != nil {
		return nil, err
	}
	if a.status != http.StatusOK {
		return nil, fmt.Errorf("the catalog: %d: %s", a.status, a.body)
	}
	var document struct{ Models []model }
	return document.Models, json.Unmarshal(a.body, &document)
}

// rest closes the connections that are idle.
func (c *client) rest() { c.http.CloseIdleConnections() }
