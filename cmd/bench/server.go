package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"

	"github.com/runlens/runlens/cmd/internal/process"
	"github.com/runlens/runlens/schema"
)

const (
	// unlimited is for limits that protect a server and would only disturb a measurement.
	unlimited = "1000000000"
	// clientsAtOnce is how many requests are answered at once; more than any scenario sends.
	clientsAtOnce = "64"
)

// product is the measured binary on a data directory.
func (b *bench) product(dataDir string) process.Product {
	return process.Product{Binary: b.Runlens, EngineLib: b.EngineLib, DataDir: dataDir}
}

// startServer starts the measured binary as a server on the engine of this run, with its files in dir and a share for
// maintenance. It caches no answers, so that a question that is asked again is answered again, unless flags say
// otherwise.
func (b *bench) startServer(
	ctx context.Context, dir string, share float64, flags ...string,
) (*process.Server, error) {
	return b.serve(ctx, b.product(b.storeDir()), dir, share, flags...)
}

// serve is startServer on other stores. It makes the folder of the files, if it is not there.
func (b *bench) serve(
	ctx context.Context, product process.Product, dir string, share float64, flags ...string,
) (*process.Server, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return product.Serve(ctx, dir, append([]string{
		"--admin-listen", "127.0.0.1:0", "--answer-cache-mib", "0",
		"--rate-limit-per-minute", unlimited, "--verify-limit-per-minute", unlimited,
		"--org-concurrency", clientsAtOnce, "--global-concurrency", clientsAtOnce, "--query-timeout", "10m",
		"--maintenance-share", strconv.FormatFloat(share, 'g', -1, 64)}, flags...)...)
}

// An apiClient queries the server for one organization, over connections that are kept.
type apiClient struct {
	url, key string
	http     *http.Client
}

// client queries a server for the organization, with the one key that the run makes for it.
func (b *bench) client(
	ctx context.Context, server *process.Server, organization schema.OrganizationID,
) (*apiClient, error) {
	key, known := b.keys[organization]
	if !known {
		created, err := b.product(b.storeDir()).CreateKey(ctx, string(organization))
		if err != nil {
			return nil, err
		}
		key = created.Key
		b.keys[organization] = key
	}
	return newAPIClient(server, key), nil
}

func newAPIClient(server *process.Server, key string) *apiClient {
	return &apiClient{
		url: "http://" + server.Address + "/api/v1/analytics/query", key: key,
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}},
	}
}

// query sends a request and reads the whole response.
func (c *apiClient) query(ctx context.Context, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+c.key)
	request.Header.Set("Content-Type", "application/json")
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, text)
	}
	return text, err
}
