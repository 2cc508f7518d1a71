package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// probeTimeout bounds one probe of an admin address. A readiness check there takes at most five seconds.
const probeTimeout = 8 * time.Second

// mostProbeBytes of an answer are read: the reason why a process is not ready is a sentence.
const mostProbeBytes = 4 << 10

type healthCmd struct {
	AdminListen string `env:"RUNLENS_ADMIN_LISTEN" default:"127.0.0.1:9090" placeholder:"HOST:PORT" help:"@health_listen"`
	Live        bool   `help:"Only require that the process answers, not that its store does."`
}

func (healthCmd) Help() string {
	return `Exits with 0 if the server or worker at the admin address is ready, else with 1 and the reason.
It is the health check of the container image, which has no other program.

Example:
  runlens health
  runlens health --admin-listen 127.0.0.1:9091 --live`
}

func (c healthCmd) Run(ctx context.Context, streams streams) error {
	if c.AdminListen == "off" {
		return usageError{errors.New("--admin-listen is off, so that nothing can be asked")}
	}
	address, err := reachable(c.AdminListen)
	if err != nil {
		return usageError{fmt.Errorf("--admin-listen: %w", err)}
	}
	path := "/readyz"
	if c.Live {
		path = "/healthz"
	}
	said, err := probe(ctx, address, path)
	if err != nil {
		return err
	}
	say(streams.out, "%s", said)
	return nil
}

// reachable is an address to which this machine connects to reach what listens on listen: one of all interfaces is
// reached by the loopback one.
func reachable(listen string) (string, error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", err
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
		if ip != nil && ip.To4() == nil {
			host = "::1"
		}
	}
	return net.JoinHostPort(host, port), nil
}

// probe requests a path of an admin address that needs no token. The error says why the answer is not 200.
func probe(ctx context.Context, address, path string) (said string, err error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		return "", usageError{fmt.Errorf("--admin-listen: %w", err)}
	}
	request.Close = true
	transport := &http.Transport{} // not through a proxy that the environment names
	response, err := transport.RoundTrip(request)
	if err != nil {
		return "", fmt.Errorf("nothing answers at %s: start the server or worker, or name its address by --admin-listen",
			address)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, mostProbeBytes))
	if err != nil {
		return "", fmt.Errorf("the answer of %s broke off", address)
	}
	said = strings.TrimRight(string(text), "\n")
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s answers %d: %s", address, response.StatusCode, said)
	}
	return said, nil
}
