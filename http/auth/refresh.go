package auth

import (
	"context"
	"time"
)

// Follow refreshes until ctx is done. While a refresh fails or is late, each key is looked up.
func (v *Verifier) Follow(ctx context.Context) {
	ticker := time.NewTicker(refreshEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		// What is read later proves nothing any more.
		refreshing, cancel := context.WithTimeout(ctx, trustFor)
		err := v.Refresh(refreshing)
		cancel()
		if err != nil && ctx.Err() == nil {
			v.logger.Warn("the API keys could not be read; each is looked up", "error", err)
		}
	}
}

// Refresh reads whether a key changed since the last refresh:
//
//  1. No: everything that was read since the last change is right, as of the instant before the statement was sent.
//  2. Yes, or it is the first refresh, or the established keys could not be read since: they are read, in one
//     statement for all organizations. The others are looked up when they are used.
//
// An error of the first refresh means that the keys cannot be read. After any error, keys are looked up.
func (v *Verifier) Refresh(ctx context.Context) error {
	now := v.now()
	fingerprint, err := v.store.Fingerprint(ctx)
	if err != nil {
		return err
	}
	v.mu.Lock()
	if fingerprint != v.fingerprint {
		v.epoch++
	}
	v.fingerprint, v.checked = fingerprint, now
	v.sweep(now)
	read := v.established == v.epoch
	v.mu.Unlock()
	if read {
		return nil
	}
	_, err = v.readEstablished(ctx, now)
	return err
}

// sweep forgets, now and then, the credentials that are not established any more: their keys are not in use, or not
// valid. It requires the lock.
func (v *Verifier) sweep(now time.Time) {
	if now.Sub(v.swept) < sweepEvery {
		return
	}
	v.swept = now
	for c, k := range v.cache {
		if now.Sub(k.used) >= establishedFor {
			delete(v.cache, c)
		}
	}
}

// reload reads which credentials are established, and forgets those that are not valid any more.
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
	valid, err := v.readEstablished(ctx, now)
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for c, k := range v.cache {
		// What is trusted may not be recorded yet.
		if !valid[c] && !v.trusts(k, now) {
			delete(v.cache, c)
		}
	}
	return nil
}

// readEstablished keeps the credentials that are established and valid by the store, and returns them.
func (v *Verifier) readEstablished(ctx context.Context, now time.Time) (map[Credential]bool, error) {
	v.mu.Lock()
	epoch := v.epoch
	v.mu.Unlock()
	// The store learns of a use an hour late at most, so it is queried for those of another hour.
	used, err := v.store.Used(ctx, now.Add(-establishedFor-recordEvery), now)
	if err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.established = epoch
	valid := make(map[Credential]bool, len(used))
	for _, use := range used {
		c := Credential{KeyID: use.KeyID, Hash: use.SecretHash}
		valid[c] = true
		k := v.keep(c, use.APIKey, now, epoch)
		if use.LastUsedAt.After(k.used) {
			k.used = use.LastUsedAt
		}
		if use.LastUsedAt.After(k.recorded) {
			k.recorded = use.LastUsedAt
		}
	}
	return valid, nil
}
