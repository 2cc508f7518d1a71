package auth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/runlens/runlens/schema"
)

// ScopeAnalyticsRead is what both endpoints require (spec 5.1).
const ScopeAnalyticsRead = "analytics:read"

const (
	// trustFor is how long a verification is relied upon without asking the store again. It is
	// below the 5 s in which a revocation must hold everywhere (contract 2).
	trustFor = 3 * time.Second
	// establishedFor is how long a credential that verified stays off the global budget (spec section 8).
	establishedFor = 7 * 24 * time.Hour
	// recordEvery is how often at most a key's use is written to the store.
	recordEvery = time.Hour
	// reloadEvery is how often at most the established credentials of other servers are fetched.
	reloadEvery = 5 * time.Second
)

// ErrUnauthorized is returned for every credential that is not valid now, whatever the reason (spec 5.3).
var ErrUnauthorized = errors.New("auth: not a valid key")

// A LimitedError is returned when the global verification budget is exhausted.
type LimitedError struct{ RetryAfter time.Duration }

func (e *LimitedError) Error() string {
	return fmt.Sprintf("auth: verification budget exhausted for %v", e.RetryAfter)
}

// A Principal is who sent a request.
type Principal struct {
	KeyID          string
	OrganizationID schema.OrganizationID
	Scopes         []string
}

// May reports whether the principal has a scope.
func (p Principal) May(scope string) bool { return slices.Contains(p.Scopes, scope) }

// A Store keeps keys and when they were last used.
type Store interface {
	// Find returns the key with an id, revoked or not; false when there is none.
	Find(ctx context.Context, keyID string) (schema.APIKey, bool, error)
	// Used returns the keys that are not revoked and verified at or after since.
	Used(ctx context.Context, since time.Time) ([]schema.APIKeyUse, error)
	// RecordUse keeps that a key verified at an instant.
	RecordUse(ctx context.Context, keyID string, at time.Time) error
}

// A Budget is a rate. Take reports whether one more fits in at an instant, and if not, after how long it may.
type Budget interface {
	Take(now time.Time) (bool, time.Duration)
}

// A Verifier verifies credentials. It is safe for concurrent use. What it keeps in memory grows
// with the number of keys that exist, never with invented ones.
type Verifier struct {
	store  Store
	budget Budget
	now    func() time.Time
	logger *slog.Logger

	mu          sync.Mutex
	trusted     map[Credential]trust
	established map[Credential]time.Time // last successful verification
	recorded    map[Credential]time.Time // as of which the store knows
	loaded      time.Time
}

type trust struct {
	principal Principal
	until     time.Time
}

// NewVerifier returns a Verifier on a store. The budget is for well-formed credentials without a
// successful verification in the last seven days, on all servers that share the store.
func NewVerifier(store Store, budget Budget, now func() time.Time, logger *slog.Logger) *Verifier {
	return &Verifier{
		store: store, budget: budget, now: now, logger: logger,
		trusted: map[Credential]trust{}, established: map[Credential]time.Time{}, recorded: map[Credential]time.Time{},
	}
}

// Verify tells whose credential it is. The error is ErrUnauthorized, a *LimitedError, or a failure of the store.
func (v *Verifier) Verify(ctx context.Context, c Credential) (Principal, error) {
	now := v.now()
	if p, ok := v.trustedPrincipal(c, now); ok {
		return p, nil
	}
	if err := v.admit(ctx, c, now); err != nil {
		return Principal{}, err
	}
	key, found, err := v.store.Find(ctx, c.KeyID)
	if err != nil {
		return Principal{}, err
	}
	// An unknown id is compared as well, with a hash that nothing has, so that it takes as long as a wrong secret.
	if same := c.Hash.Equal(key.SecretHash); !same || !found || key.RevokedAt != nil {
		v.forget(c)
		return Principal{}, ErrUnauthorized
	}
	p := Principal{KeyID: key.KeyID, OrganizationID: key.OrganizationID, Scopes: key.Scopes}
	if v.remember(c, p, now) {
		// A store that cannot be written to, because its disk is full for instance, still answers queries.
		if err := v.store.RecordUse(ctx, c.KeyID, now); err != nil {
			v.logger.Warn("the use of a key could not be recorded", "key_id", c.KeyID, "error", err)
		}
	}
	return p, nil
}

func (v *Verifier) trustedPrincipal(c Credential, now time.Time) (Principal, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	t, ok := v.trusted[c]
	return t.principal, ok && now.Before(t.until)
}

// admit draws on the budget for a credential that is not established. When the budget is exhausted it first
// asks the store whether another server established the credential meanwhile.
func (v *Verifier) admit(ctx context.Context, c Credential, now time.Time) error {
	if v.isEstablished(c, now) {
		return nil
	}
	ok, retryAfter := v.budget.Take(now)
	if ok {
		return nil
	}
	if err := v.reload(ctx, now); err != nil {
		return err
	}
	if v.isEstablished(c, now) {
		return nil
	}
	return &LimitedError{retryAfter}
}

func (v *Verifier) isEstablished(c Credential, now time.Time) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	at, ok := v.established[c]
	return ok && now.Sub(at) < establishedFor
}

// Load fetches the credentials that are established, so that a restart does not defer them.
func (v *Verifier) Load(ctx context.Context) error { return v.reload(ctx, v.now()) }

func (v *Verifier) reload(ctx context.Context, now time.Time) error {
	v.mu.Lock()
	due := now.Sub(v.loaded) >= reloadEvery
	if due {
		v.loaded = now
	}
	v.mu.Unlock()
	if !due {
		return nil
	}
	used, err := v.store.Used(ctx, now.Add(-establishedFor))
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, use := range used {
		c := Credential{KeyID: use.KeyID, Hash: use.SecretHash}
		if use.LastUsedAt.After(v.established[c]) {
			v.established[c] = use.LastUsedAt
		}
		if use.LastUsedAt.After(v.recorded[c]) {
			v.recorded[c] = use.LastUsedAt
		}
	}
	return nil
}

// remember keeps a success and reports whether the store should know of it.
func (v *Verifier) remember(c Credential, p Principal, now time.Time) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.trusted[c] = trust{p, now.Add(trustFor)}
	v.established[c] = now
	if now.Sub(v.recorded[c]) < recordEvery {
		return false
	}
	v.recorded[c] = now
	return true
}

// forget makes a credential like one that never verified, so that a revoked key cannot be told from an unknown one.
func (v *Verifier) forget(c Credential) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.trusted, c)
	delete(v.established, c)
	delete(v.recorded, c)
}
