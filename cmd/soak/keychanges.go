package main

import (
	"context"
	"net/http"
	"time"

	"github.com/runlens/runlens/cmd/internal/harness"
	"github.com/runlens/runlens/cmd/internal/process"
)

const (
	// revokedWithin is the time in which a revocation holds on every server (contract 2), and a margin for this
	// machine.
	revokedWithin = 5*time.Second + time.Second

	commandPatience = 2 * time.Minute
)

// changeKeys makes a key, uses it, revokes it, and uses it again when that must hold.
func (m *mixture) changeKeys(ctx, end context.Context) {
	for end.Err() == nil {
		m.changeKey(ctx)
	}
}

func (m *mixture) changeKey(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, commandPatience)
	defer cancel()
	began := time.Now()
	key, err := m.target.product.CreateKey(ctx, organizations[0])
	if err != nil {
		m.failedCommand(ctx, "create", began, err)
		return
	}
	m.keyChanges.add("created")
	c := newClient(m.target.server.Address, key.Key)
	defer c.rest()
	m.use(ctx, c, "a new key", http.StatusOK)
	for m.revoke(ctx, key) != nil {
		if !harness.Pause(ctx, time.Second) {
			return
		}
	}
	m.keyChanges.add("revoked")
	if !harness.Pause(ctx, revokedWithin) {
		return
	}
	// A server that cannot reach its store hears of a revocation when it can again.
	for m.crashes.during(time.Now(), time.Now()) {
		if !harness.Pause(ctx, time.Second) {
			return
		}
	}
	m.use(ctx, c, "a revoked key", http.StatusUnauthorized)
}

// revoke takes a key back. It may fail only while the engine is away.
func (m *mixture) revoke(ctx context.Context, key process.Key) error {
	began := time.Now()
	err := m.target.product.Command(ctx, "keys", "revoke", key.ID).Run()
	if err != nil {
		m.failedCommand(ctx, "revoke", began, err)
	}
	return err
}

func (m *mixture) failedCommand(ctx context.Context, name string, began time.Time, err error) {
	m.keyChanges.add("failed to " + name)
	if ctx.Err() == nil && !m.crashes.during(began, time.Now()) {
		m.wrongKey.add("keys %s: %v", name, err)
	}
}

// use reads the catalog with a key and expects a status, or 429.
func (m *mixture) use(ctx context.Context, c *client, what string, status int) {
	a, err := c.send(ctx, http.MethodGet, catalogPath, nil)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		m.wrongKey.add("%s: %v", what, err)
	case a.breach() != "":
		m.wrongKey.add("%s: %s", what, a.breach())
	case a.status != status && a.status != http.StatusTooManyRequests && !m.crashes.excuse(a):
		m.wrongKey.add("%s: %d %s", what, a.status, a.body)
	}
}
