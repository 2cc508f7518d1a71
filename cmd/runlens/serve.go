package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/runlens/runlens/cmd/internal/output"
)

// usualQueries and usualConnections are how many of them a server takes at once by default.
const usualQueries, usualConnections = 16, 4096

type serveCmd struct {
	storeFlags
	adminFlags
	redisFlags
	pushFlags
	Listen      string `env:"RUNLENS_LISTEN" default:"127.0.0.1:8080" placeholder:"HOST:PORT" help:"@listen"`
	AdminListen string `env:"RUNLENS_ADMIN_LISTEN" default:"127.0.0.1:9090" placeholder:"HOST:PORT" help:"@admin_listen"`
	ReadyFile   string `placeholder:"FILE" help:"@ready_file"`

	RateLimitPerMinute   int `env:"RUNLENS_RATE_LIMIT_PER_MINUTE" default:"60" help:"@rate_limit"`
	VerifyLimitPerMinute int `env:"RUNLENS_VERIFY_LIMIT_PER_MINUTE" default:"120" help:"@verify_limit"`
	OrgConcurrency       int `env:"RUNLENS_ORG_CONCURRENCY" default:"4" help:"@org_concurrency"`
	GlobalConcurrency    int `env:"RUNLENS_GLOBAL_CONCURRENCY" default:"${queries}" help:"Queries at once."`
	AnswerCacheMiB       int `name:"answer-cache-mib" env:"RUNLENS_ANSWER_CACHE_MIB" default:"64" help:"@answer_cache"`
	MaxConnections       int `env:"RUNLENS_MAX_CONNECTIONS" default:"${connections}" help:"@max_connections"`
	MaxBodyBytes         int `env:"RUNLENS_MAX_BODY_BYTES" default:"1048576" help:"@max_body_bytes"`

	MaxConnectionsPerAddress *int `env:"RUNLENS_MAX_CONNECTIONS_PER_ADDRESS" help:"@max_per_address"`

	CursorSecretFile string        `env:"RUNLENS_CURSOR_SECRET_FILE" placeholder:"FILE" help:"@cursor_secret_file"`
	QueryTimeout     time.Duration `env:"RUNLENS_QUERY_TIMEOUT" default:"30s" help:"@query_timeout"`
	DrainTimeout     time.Duration `env:"RUNLENS_DRAIN_TIMEOUT" default:"20s" help:"@drain_timeout"`
	TLSCert          string        `env:"RUNLENS_TLS_CERT" placeholder:"FILE" help:"@tls_cert"`
	TLSKey           string        `env:"RUNLENS_TLS_KEY" placeholder:"FILE" help:"@tls_key"`
	TrustedProxies   []string      `env:"RUNLENS_TRUSTED_PROXIES" placeholder:"NETWORK" help:"@trusted_proxies"`

	MaintenanceShare float64 `env:"RUNLENS_MAINTENANCE_SHARE" default:"0.4" placeholder:"SHARE" help:"@maintenance_share"`
}

func (serveCmd) Help() string {
	return `Applies pending migrations, then serves the API until SIGINT or SIGTERM.
A signal lets requests in flight finish. A second signal ends the process at once.
Without --clickhouse-url the server starts the embedded engine, or joins it if it runs.

Example:
  runlens serve --listen 127.0.0.1:8080 --data-dir ./data`
}

// mostCacheMiB is more than any machine has.
const mostCacheMiB = 1 << 30

// check refuses settings that cannot work, one clear line each.
func (c serveCmd) check() error {
	perAddress := 1
	if c.MaxConnectionsPerAddress != nil {
		perAddress = *c.MaxConnectionsPerAddress
	}
	for _, number := range []struct {
		flag  string
		value int
	}{
		{"--rate-limit-per-minute", c.RateLimitPerMinute}, {"--verify-limit-per-minute", c.VerifyLimitPerMinute},
		{"--org-concurrency", c.OrgConcurrency}, {"--global-concurrency", c.GlobalConcurrency},
		{"--max-body-bytes", c.MaxBodyBytes},
		{"--max-connections", c.MaxConnections}, {"--max-connections-per-address", perAddress},
		{"--query-timeout", int(c.QueryTimeout)}, {"--drain-timeout", int(c.DrainTimeout)},
	} {
		if number.value < 1 {
			return usageError{fmt.Errorf("%s must be greater than 0", number.flag)}
		}
	}
	if c.AnswerCacheMiB < 0 || c.AnswerCacheMiB > mostCacheMiB {
		return usageError{fmt.Errorf("--answer-cache-mib must be 0 to %d", mostCacheMiB)}
	}
	if !(c.MaintenanceShare >= 0 && c.MaintenanceShare < 1) { // nor is it no number
		return usageError{fmt.Errorf("--maintenance-share must be at least 0 and less than 1")}
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		return usageError{fmt.Errorf("--tls-cert and --tls-key go together")}
	}
	if _, err := parseNetworks(c.TrustedProxies); err != nil {
		return usageError{fmt.Errorf("--trusted-proxies: %w", err)}
	}
	if err := c.redisFlags.check(); err != nil {
		return err
	}
	if err := c.pushFlags.check(c); err != nil {
		return err
	}
	if c.AdminListen == c.Listen && !endsWithPortZero(c.Listen) {
		return usageError{fmt.Errorf("--admin-listen must differ from --listen")}
	}
	return nil
}

func (c serveCmd) Run(ctx context.Context, logger *slog.Logger) error {
	if err := c.check(); err != nil {
		return err
	}
	if c.ReadyFile != "" {
		if err := removeReadyFile(c.ReadyFile); err != nil {
			return usageError{fmt.Errorf("--ready-file: %w", err)}
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, endSignals()...)
	defer signal.Stop(signals)

	type started struct {
		app *app
		err error
	}
	starting := make(chan started, 1)
	go func() {
		a, err := startApp(ctx, c, logger)
		starting <- started{a, err}
	}()
	var a *app
	select {
	case s := <-starting:
		if s.err != nil {
			return s.err
		}
		a = s.app
	case s := <-signals:
		logger.Info("stopping before the server has started", "signal", s.String())
		cancel()
		select {
		case s := <-starting:
			if s.err == nil {
				return c.close(ctx, s.app, signals)
			}
		case <-signals:
		case <-time.After(closePatience):
		}
		return nil
	}
	if c.ReadyFile != "" {
		if err := writeReadyFile(c.ReadyFile, a.Address()); err != nil {
			return errors.Join(fmt.Errorf("--ready-file: %w", err), c.close(ctx, a, signals))
		}
	}
	managed(ctx, a.admin, logger)
	var failure error
	select {
	case s := <-signals:
		logger.Info("draining", "signal", s.String(), "at_most", c.DrainTimeout.String())
	case failure = <-a.Failed():
	}
	tellManager(daemon.SdNotifyStopping, logger)
	return cmp.Or(failure, c.close(ctx, a, signals))
}

// closePatience is how long a server may take to leave the store when its requests are finished or their time is over.
const closePatience = 5 * time.Second

// close ends a server: requests have the drain timeout, the rest closePatience. A further signal ends the wait at once.
func (c serveCmd) close(ctx context.Context, a *app, signals <-chan os.Signal) error {
	drain, stop := context.WithTimeout(context.WithoutCancel(ctx), c.DrainTimeout)
	defer stop()
	closed := make(chan error, 1)
	go func() { closed <- a.Close(drain) }()
	select {
	case err := <-closed:
		return err
	case <-signals:
		return errors.New("ended by a second signal; requests in flight were cut off")
	case <-time.After(c.DrainTimeout + closePatience):
		return errors.New("the store could not be left in time; nothing that was acknowledged is lost")
	}
}

// removeReadyFile removes the file of an earlier server, which names an address at which nobody answers. It refuses
// what is no file: a pipe might never be read, and a device is not this server's alone.
func removeReadyFile(path string) error {
	file, old, err := output.Place(path)
	switch {
	case err != nil || old == nil:
		return err
	case !old.Mode().IsRegular():
		return fmt.Errorf("%s is a pipe or a device: name a file", path)
	}
	return os.Remove(file)
}

// writeReadyFile puts the address in place at once, so that whoever waits for the file never reads half of it.
func writeReadyFile(path, address string) error {
	file, err := output.Create(path)
	if err != nil {
		return err
	}
	return file.Fill(func(w io.Writer) error {
		_, err := io.WriteString(w, address)
		return err
	})
}
