package auth

import (
	"context"
	"net/netip"
	"time"

	"github.com/runlens/runlens/schema"
)

// A cached is what is kept of a credential that verified.
type cached struct {
	principal Principal
	limits    schema.KeyLimits
	proven    time.Time // at which the statement had not been sent yet that showed the key to be valid
	epoch     uint64    // of the verifier, before that statement was sent
	used      time.Time // last successful verification
	recorded  time.Time // last use that the store has, or is about to have
}

// use keeps that the credential verified, and reports whether the store should have this use.
func (k *cached) use(now time.Time) bool {
	k.used = now
	if now.Sub(k.recorded) < recordEvery {
		return false
	}
	k.recorded = now
	return true
}

// trusts reports whether nothing has to be read to rely on a cached credential. It requires the lock.
//
// In the epoch in which the key was read, no key changed between the statement that began the epoch and the last
// one that found the same fingerprint. So the key was valid when that one was sent.
func (v *Verifier) trusts(k *cached, now time.Time) bool {
	return now.Sub(k.proven) < trustFor || k.epoch == v.epoch && now.Sub(v.checked) < trustFor
}

// trustedPrincipal is whose credential it is, if that needs no statement. The epoch is that of a statement that is sent
// now.
func (v *Verifier) trustedPrincipal(
	ctx context.Context, c Credential, now time.Time, from netip.Addr,
) (p Principal, epoch uint64, ok bool) {
	v.mu.Lock()
	epoch = v.epoch
	k := v.cache[c]
	ok = k != nil && v.trusts(k, now) && k.limits.Permit(now, from)
	due := false
	if ok {
		p, due = k.principal, k.use(now)
	}
	v.mu.Unlock()
	if due {
		v.record(ctx, c.KeyID, now)
	}
	return p, epoch, ok
}

func (v *Verifier) isEstablished(c Credential, now time.Time, from netip.Addr) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	k := v.cache[c]
	return k != nil && now.Sub(k.used) < establishedFor && k.limits.Permit(now, from)
}

// remember keeps a success of now. The key is what a statement returned that was sent in an epoch.
func (v *Verifier) remember(
	ctx context.Context, c Credential, key schema.APIKey, now time.Time, epoch uint64,
) Principal {
	v.mu.Lock()
	k := v.keep(c, key, now, epoch)
	p, due := k.principal, k.use(now)
	v.mu.Unlock()
	if due {
		v.record(ctx, c.KeyID, now)
	}
	return p
}

// keep caches what a statement returned that was sent in an epoch, after the instant proven. It requires the lock.
func (v *Verifier) keep(c Credential, key schema.APIKey, proven time.Time, epoch uint64) *cached {
	k := v.cache[c]
	if k == nil {
		k = &cached{}
		v.cache[c] = k
	}
	k.principal = Principal{KeyID: key.KeyID, OrganizationID: key.OrganizationID, Scopes: key.Scopes}
	k.limits, k.proven, k.epoch = key.KeyLimits, proven, epoch
	return k
}

// forget makes a credential like one that never verified, unless its key is valid for callers from elsewhere.
func (v *Verifier) forget(c Credential, elsewhere bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !elsewhere {
		delete(v.cache, c)
	}
}
