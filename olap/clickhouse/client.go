package clickhouse

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"time"
)

// An engineClient talks to one run of the embedded engine for the engine's own sake, without the
// driver's pool and settings.
type engineClient struct{ addr, password string }

// probeClient never reuses a connection: an engine ends five seconds later while one is open.
var probeClient = &http.Client{
	Timeout:   2 * time.Second,
	Transport: &http.Transport{DisableKeepAlives: true},
}

// query runs one statement as the data user and returns its output.
func (c engineClient) query(statement string) (string, error) {
	request, err := http.NewRequest(http.MethodPost, "http://"+c.addr+"/", strings.NewReader(statement))
	if err != nil {
		return "", err
	}
	request.SetBasicAuth(dataUser, c.password)
	response, err := probeClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = errors.New(response.Status)
	}
	return strings.TrimSpace(string(body)), err
}

// instance returns the name of the run that answers at the address, or "" when none of ours does.
// An open port proves nothing: another program may have been given it since.
func (c engineClient) instance() string {
	name, err := c.query("SELECT getMacro('runlens_instance')")
	if err != nil {
		return ""
	}
	return name
}
