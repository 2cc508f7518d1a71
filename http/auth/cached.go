package auth

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/runlens/runlens/olap/elapsed"
	"github.com/runlens/runlens/schema"
)

// A cached is what is kept of a key that verified. There may be a million of them: with its place in the map and its
// texts, one takes at most 200 bytes (TestMemoryOfAKey). Durations are those since Verifier.began.
type cached struct {
	hash         Hash // of the secret that verified
	organization schema.OrganizationID
	scopes       *[]string         // shared with other keys
	limits       *schema.KeyLimits // nil for none
	proven       time.Time         // when the statement had not been sent yet that showed the key to be valid
	used         time.Duration     // last successful verification
	recorded     time.Duration     // last use that the store has, or is about to have
	current      bool              // no change of the key was found since the statement that read it was sent
}

// of is what is kept of a credential; nil for nothing. It requires the lock.
func (v *Verifier) of(c Credential) *cached {
	if k := v.cache[c.KeyID]; k != nil && c.Hash.Equal(k.hash) {
		return k
	}
	return nil
}

func (k *cached) permits(now time.Time, from netip.Addr) bool {
	return k.limits == nil || k.limits.Permit(now, from)
}

// use keeps that the key verified, and that the store is told so if it was not for an hour. It requires the lock.
func (v *Verifier) use(keyID string, k *cached, now time.Time) Principal {
	k.used = now.Sub(v.began)
	if k.used-k.recorded >= recordEvery {
		k.recorded = k.used
		v.unrecorded[keyID] = now
	}
	return Principal{KeyID: keyID, Access: k.access(), Scopes: *k.scopes}
}

// access is what the key may read.
func (k *cached) access() schema.Access {
	key := schema.APIKey{OrganizationID: k.organization}
	if k.limits != nil {
		key.KeyLimits = *k.limits
	}
	return key.Access()
}

// trusts reports whether nothing has to be read to rely on what is kept of a key. It requires the lock.
//
// A key that is current did not change between the statement that read it and the last one that looked for changes. So
// it was valid when that one was sent.
func (v *Verifier) trusts(k *cached, now time.Time) bool {
	return elapsed.Between(k.proven, now) < trustFor || k.current && elapsed.Between(v.checked, now) < trustFor
}

// trustedPrincipal is whose credential it is, if that needs no statement. The epoch is that of a statement that is sent
// now.
func (v *Verifier) trustedPrincipal(c Credential, now time.Time, from netip.Addr) (p Principal, epoch uint64, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	k := v.of(c)
	if k == nil || !v.trusts(k, now) || !k.permits(now, from) || v.here != nil && !v.here(k.organization) {
		return Principal{}, v.epoch, false
	}
	return v.use(c.KeyID, k, now), v.epoch, true
}

func (v *Verifier) isEstablished(c Credential, now time.Time, from netip.Addr) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	k := v.of(c)
	return k != nil && v.uses(k, now) && k.permits(now, from)
}

// uses reports whether a key was used in the last seven days. It requires the lock.
func (v *Verifier) uses(k *cached, now time.Time) bool {
	return now.Sub(v.began)-k.used < establishedFor
}

// remember keeps a success of now. The key is what a statement returned that was sent in an epoch.
func (v *Verifier) remember(c Credential, key schema.APIKey, now time.Time, epoch uint64) Principal {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.use(c.KeyID, v.keep(key, now, epoch), now)
}

// keep caches what a statement returned that was sent in an epoch, after the instant proven. It requires the lock.
func (v *Verifier) keep(key schema.APIKey, proven time.Time, epoch uint64) *cached {
	k := v.cache[key.KeyID]
	if k == nil {
		k = &cached{used: never, recorded: never}
		v.cache[strings.Clone(key.KeyID)] = k
	}
	k.hash, k.organization, k.scopes = key.SecretHash, key.OrganizationID, v.shared(key.Scopes)
	if k.limits = nil; key.ExpiresAt != nil || len(key.Networks) > 0 || key.Restriction != nil {
		limits := key.KeyLimits // nothing else of the key is kept with them
		k.limits = &limits
	}
	k.proven, k.current = proven, v.isCurrent(key.KeyID, epoch)
	return k
}

// never is longer ago than anything that is asked for.
const never = -100 * 365 * 24 * time.Hour

// mostScopes is of how many sets of scopes keys share one.
const mostScopes = 100

// shared is the one slice with some scopes. It requires the lock.
func (v *Verifier) shared(scopes []string) *[]string {
	for _, s := range v.scopes {
		if slices.Equal(*s, scopes) {
			return s
		}
	}
	if len(v.scopes) < mostScopes {
		v.scopes = append(v.scopes, &scopes)
	}
	return &scopes
}

// forget makes a credential like one that never verified, unless its key is valid for callers from elsewhere.
func (v *Verifier) forget(c Credential, elsewhere bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !elsewhere && v.of(c) != nil {
		delete(v.cache, c.KeyID)
	}
}

// record writes the uses that the store has not been told of yet, in one insert. Those that it does not take are
// written with the next ones: they say who is established, and when keys were last used, to about an hour.
func (v *Verifier) record(ctx context.Context) error {
	v.mu.Lock()
	uses := v.unrecorded
	v.unrecorded = map[string]time.Time{}
	v.mu.Unlock()
	if len(uses) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, recordPatience)
	defer cancel()
	err := v.store.RecordUses(ctx, uses)
	if err == nil {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for id, at := range uses {
		if _, later := v.unrecorded[id]; !later {
			v.unrecorded[id] = at
		}
	}
	return err
}
