package main

import (
	"fmt"
	"log/slog"

	httpapi "github.com/runlens/runlens/http"
	"github.com/runlens/runlens/http/auth"
	"github.com/runlens/runlens/http/limit"
	"github.com/runlens/runlens/http/limit/shared"
	"github.com/runlens/runlens/olap/doctor/finding"
)

// redisFlags say which Redis keeps the limits a minute of all servers.
type redisFlags struct {
	RedisURL string `name:"redis-url" env:"RUNLENS_REDIS_URL" placeholder:"URL" help:"@redis_url"`
}

// open returns nothing without an address. An error is wrong usage.
func (f redisFlags) open(logger *slog.Logger) (*shared.Store, error) {
	if f.RedisURL == "" {
		return nil, nil
	}
	store, err := shared.Open(f.RedisURL, shared.Patience, logger)
	if err != nil {
		return nil, usageError{fmt.Errorf("--redis-url: %w", err)}
	}
	return store, nil
}

// check refuses what is no address.
func (f redisFlags) check() error {
	store, err := f.open(slog.New(slog.DiscardHandler))
	if store != nil {
		store.Close()
	}
	return err
}

// windows are the limits a minute: of all servers with a Redis, else of this one.
func (c serveCmd) windows(redis *shared.Store) (auth.Budget, limit.Rates) {
	if redis == nil {
		return limit.NewWindow(c.VerifyLimitPerMinute, verifyWindow), nil
	}
	return redis.Window("verification", c.VerifyLimitPerMinute, verifyWindow),
		redis.Rates("rate", c.RateLimitPerMinute, httpapi.RateWindow)
}

// examine finds out whether the Redis works. Servers answer without it, so it is no problem where it doesn't.
func (f redisFlags) examine() ([]finding.Finding, error) {
	store, err := f.open(slog.New(slog.DiscardHandler))
	if store == nil {
		return nil, err
	}
	defer store.Close()
	found := finding.Finding{Check: "redis", Result: finding.OK, Says: "limits hold over all servers"}
	if reason := store.Try(); reason != "" {
		found.Result, found.Says = finding.Warning, reason+", so that each server applies its own limits"
		found.Do = "check RUNLENS_REDIS_URL, and what deploy/README.md says that Redis must allow"
	}
	return []finding.Finding{found}, nil
}
