package clickhouse

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"
)

// An engineClient talks to one run of the embedded engine for the engine's own sake, without the
// driver's pool and settings.
type engineClient struct {
	address  address
	password string
}

// clientTimeout bounds one statement of an engineClient.
const clientTimeout = 2 * time.Second

// query runs one statement as the data user and returns its output. It never reuses a connection: an engine
// ends five seconds later while one is open.
func (c engineClient) query(statement string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), clientTimeout)
	defer cancel()
	url, body := "http://"+c.address.Addr+"/", strings.NewReader(statement)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, body)
	if err != nil {
		return "", err
	}
	request.SetBasicAuth(dataUser, c.password)
	response, err := (&http.Transport{DisableKeepAlives: true, DialContext: c.address.dial}).RoundTrip(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = errors.New(response.Status)
	}
	return strings.TrimSpace(string(answer)), err
}
