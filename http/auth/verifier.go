package auth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/runlens/runlens/schema"
)

// The scopes of keys.
const (
	ScopeAnalyticsRead = schema.ScopeAnalyticsRead // what both endpoints of the specification require (spec 5.1)
	ScopeIngestWrite   = "ingest:write"            // what pushing records requires
)

// Scopes are all scopes.
var Scopes = []string{ScopeAnalyticsRead, ScopeIngestWrite}

const (
	// trustFor is how long a verification is relied upon after a statement that showed it to be right was sent. It is
	// below the 5 s in which a revocation must hold everywhere (contract 2).
	trustFor = 3 * time.Second
	// refreshEvery is how often Follow reads whether a key changed. The next statement must end within trustFor.
	refreshEvery = 2 * time.Second
	// establishedFor is how long a credential that verified stays off the global budget (spec section 8).
	establishedFor = 7 * 24 * time.Hour
	// maxLookups is how many look-ups run at once. Further ones wait here, with their deadline, and not for a
	// connection to the store, which queries need.
	maxLookups = 8
	// recordEvery is how often at most a key's use is written to the store, recordPause what lies between two inserts of
	// uses, and recordPatience how long one may take, and the pause after one that failed.
	recordEvery    = time.Hour
	recordPause    = time.Second
	recordPatience = 30 * time.Second
	// establishedPatience bounds how long the established keys are read.
	establishedPatience = time.Minute
	// mostChanged is of how many keys is kept when they changed, and mostKept how many of them are read by their ids.
	mostChanged, mostKept = 10_000, 1_000
	// reloadEvery is how often at most the established credentials are fetched. With trustFor it is not more than the 5 s
	// after which a revoked key must look like an unknown one.
	reloadEvery = 2 * time.Second
	// sweepEvery is how often at most what nobody uses any more is looked for in memory.
	sweepEvery = time.Hour
)

// ErrUnauthorized is returned for every credential that is not valid now, whatever the reason (spec 5.3).
var ErrUnauthorized = errors.New("auth: not a valid key")

// A LimitedError is returned when the global verification budget is exhausted, or when a look-up had no turn in time.
type LimitedError struct{ RetryAfter time.Duration }

func (e *LimitedError) Error() string {
	return fmt.Sprintf("auth: no verification for %v", e.RetryAfter)
}

// A Principal is who sent a request.
type Principal struct {
	KeyID  string
	Access schema.Access // what it may read, if it has the scope
	Scopes []string
}

// Organization is whose key it is.
func (p Principal) Organization() schema.OrganizationID { return p.Access.Organization() }

// May reports whether the principal has a scope.
func (p Principal) May(scope string) bool { return slices.Contains(p.Scopes, scope) }

// ErrElsewhere is returned by a Store of a key whose organization is, or is about to be, in another one.
var ErrElsewhere = errors.New("the organization of the key is in another store")

// A Store keeps keys and when they were last used.
type Store interface {
	// Valid returns the key with an id if it is neither revoked nor expired at an instant, else the zero key. It does
	// the same work for every id. With ErrElsewhere it returns a key that is valid if its organization, which is being
	// moved, is in the store: it is not by what the store says now.
	Valid(ctx context.Context, keyID string, at time.Time) (schema.APIKey, error)
	// AllValid returns those of some keys that are valid at an instant, with what Valid returns of each.
	AllValid(ctx context.Context, keyIDs []string, at time.Time) ([]schema.APIKey, error)
	// Changed returns which keys may have changed since a state, nil for none, and the state now.
	Changed(ctx context.Context, since any) (schema.APIKeyChanges, error)
	// Used passes on the keys that verified at or after since and are valid at an instant, with what Valid returns.
	Used(ctx context.Context, since, at time.Time, each func(schema.APIKeyUse)) error
	// RecordUses keeps when keys verified, by their ids.
	RecordUses(ctx context.Context, uses map[string]time.Time) error
}

// A Budget is a rate.
type Budget interface {
	// Take reports whether one more fits in at an instant, and if not, after how long it may.
	Take(now time.Time) (bool, time.Duration)
	// Full reports whether Take would refuse.
	Full(now time.Time) bool
}

// A Verifier verifies credentials. It is safe for concurrent use. What it keeps in memory grows
// with the number of keys that were used in the last week, never with invented ones.
//
// What it keeps is proven again for all keys at once: a key that is not among those that changed since it was read is
// what it was. So a key costs a statement only after it changed itself, or while it is not known what changed
// (schema/decisions/key-lookup.md).
//
// A credential that is not valid is answered alike, whether its key is unknown, revoked, expired, used from elsewhere
// or has another secret (spec 5.3): same statements, same draw on the budget, same comparison. For that, what is
// kept of a valid key helps it only while it is valid for this caller; for all others it is as if it was not there.
type Verifier struct {
	store   Store
	budget  Budget
	now     func() time.Time
	logger  *slog.Logger
	lookups chan struct{} // held during a look-up
	began   time.Time
	here    func(schema.OrganizationID) bool // nil for always

	mu         sync.Mutex
	cache      map[string]*cached   // by the id of the key
	scopes     []*[]string          // that keys share
	unrecorded map[string]time.Time // uses by the id of the key
	loaded     time.Time            // when reload last read the uses
	swept      time.Time

	state   any // of the keys, as of checked
	checked time.Time
	epoch   uint64            // how often something was found to have changed
	changed map[string]uint64 // the epochs in which keys were found to have changed, of since and later ones
	since   uint64
	// owed is the epoch since which the established keys have to be read again, established that in which they were.
	owed, established uint64
}

// NewVerifier returns a Verifier on a store. The budget is for well-formed credentials without a
// successful verification in the last seven days, on all servers that share the store.
func NewVerifier(store Store, budget Budget, now func() time.Time, logger *slog.Logger) *Verifier {
	return &Verifier{
		store: store, budget: budget, now: now, logger: logger, lookups: make(chan struct{}, maxLookups), began: now(),
		cache: map[string]*cached{}, unrecorded: map[string]time.Time{}, changed: map[string]uint64{},
	}
}

// Only has what is kept of keys count for organizations that are in the store, as here says: keys of organizations that
// are being moved are in two stores. Call it before the first use.
func (v *Verifier) Only(here func(schema.OrganizationID) bool) { v.here = here }

// Verify is that of Verifiers for one store.
func (v *Verifier) Verify(ctx context.Context, c Credential, from netip.Addr) (Principal, error) {
	return Verifiers{v}.Verify(ctx, c, from)
}

// A lookup is what a store says of a credential.
type lookup struct {
	principal Principal
	found     bool // valid for this caller
	elsewhere bool // another store may have to be asked again
	err       error
}

// lookUp looks a credential up in the store.
func (v *Verifier) lookUp(ctx context.Context, c Credential, now time.Time, from netip.Addr) lookup {
	select {
	case v.lookups <- struct{}{}:
	case <-ctx.Done():
		return lookup{err: &LimitedError{time.Second}}
	}
	defer func() { <-v.lookups }()
	// Of many requests with one key, those that waited find what the first one learned.
	p, epoch, ok := v.trustedPrincipal(c, now, from)
	if ok {
		return lookup{principal: p, found: true}
	}
	key, err := v.store.Valid(ctx, c.KeyID, now)
	elsewhere := errors.Is(err, ErrElsewhere)
	if err != nil && !elsewhere {
		return lookup{err: err}
	}
	// An unknown id is compared as well, with a hash that nothing has.
	same, permitted := c.Hash.Equal(key.SecretHash), key.Permit(now, from)
	if !same || !permitted {
		v.forget(c, same)
		return lookup{}
	}
	if elsewhere {
		return lookup{elsewhere: true}
	}
	return lookup{principal: v.remember(c, key, now, epoch), found: true}
}
