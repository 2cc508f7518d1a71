package auth

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/runlens/runlens/olap/backoff"
	"github.com/runlens/runlens/schema"
)

// Follow refreshes and records uses until ctx is done. While a refresh fails or is late, each key is looked up.
func (v *Verifier) Follow(ctx context.Context) {
	var others sync.WaitGroup
	defer others.Wait()
	others.Go(func() { v.followUses(ctx) })
	reading := make(chan struct{}, 1) // held while the established keys are read
	changes, established := backoff.Failures{Logger: v.logger}, backoff.Failures{Logger: v.logger}
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
		due, err := v.readChanges(refreshing)
		cancel()
		report(ctx, &changes, err)
		if !due {
			continue
		}
		// A million keys take longer. Meanwhile changes are read as ever.
		select {
		case reading <- struct{}{}:
			others.Go(func() {
				defer func() { <-reading }()
				reading, cancel := context.WithTimeout(ctx, establishedPatience)
				defer cancel()
				report(ctx, &established, v.readEstablished(reading, v.now()))
			})
		default:
		}
	}
}

// report logs how a reading of the keys ended.
func report(ctx context.Context, failures *backoff.Failures, err error) {
	switch {
	case ctx.Err() != nil:
	case err != nil:
		failures.Failed(ctx, slog.LevelWarn, "the API keys could not be read; each is looked up", "error", err)
	default:
		failures.Succeeded(ctx, "the API keys are read again")
	}
}

// followUses records uses until ctx is done, and then the last ones.
func (v *Verifier) followUses(ctx context.Context) {
	failures := backoff.Failures{Logger: v.logger}
	pause := recordPause
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = recordPause
		if err := v.record(context.WithoutCancel(ctx)); err != nil {
			failures.Failed(ctx, slog.LevelWarn, "the uses of keys could not be recorded", "error", err)
			pause = recordPatience
		} else {
			failures.Succeeded(ctx, "the uses of keys are recorded")
		}
	}
}

// Refresh reads which keys changed since the last refresh (readChanges), and the established keys if they have to be.
//
// An error of the first refresh means that the keys cannot be read. After any error, keys are looked up.
func (v *Verifier) Refresh(ctx context.Context) error {
	due, err := v.readChanges(ctx)
	if err == nil && due {
		err = v.readEstablished(ctx, v.now())
	}
	return err
}

// readChanges reads which keys changed since the last time:
//
//  1. What was read of other keys is right, as of the instant before the statement was sent.
//  2. Keys that changed are read, in one statement, if this server keeps something of them. The others are looked up
//     when they are used.
//  3. If any key may have changed, and at the first time, nothing is relied upon, and it is due to read which keys are
//     established. It stays due until that succeeded.
func (v *Verifier) readChanges(ctx context.Context) (due bool, err error) {
	now := v.now()
	v.mu.Lock()
	state := v.state
	v.mu.Unlock()
	changes, err := v.store.Changed(ctx, state)
	if err != nil {
		return false, err
	}
	v.mu.Lock()
	kept, epoch := v.apply(changes, now), v.epoch
	v.sweep(now)
	v.mu.Unlock()
	if len(kept) > 0 {
		err = v.readKept(ctx, kept, now, epoch)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if err != nil {
		v.owe()
	}
	return v.established < v.owed, err
}

// apply distrusts what changed, as of before now, and returns the changed keys of which something is kept. It requires
// the lock.
func (v *Verifier) apply(changes schema.APIKeyChanges, now time.Time) (kept []string) {
	v.state, v.checked = changes.State, now
	if changes.All {
		v.owe()
		v.forgetChanges()
		for _, k := range v.cache {
			k.current = false
		}
		return nil
	}
	if len(changes.KeyIDs) > 0 {
		v.epoch++
	}
	for _, id := range changes.KeyIDs {
		v.changed[id] = v.epoch
		if k := v.cache[id]; k != nil {
			k.current = false
			kept = append(kept, id)
		}
	}
	if len(v.changed) > mostChanged {
		v.forgetChanges()
	}
	if len(kept) > mostKept {
		v.owe()
		return nil
	}
	return kept
}

// owe makes it due to read the established keys, by a statement that has not been sent yet. It requires the lock.
func (v *Verifier) owe() {
	v.epoch++
	v.owed = v.epoch
}

// forgetChanges makes whatever statements return that have been sent count as changed meanwhile. It requires the lock.
func (v *Verifier) forgetChanges() {
	v.epoch++
	v.since = v.epoch
	clear(v.changed)
}

// isCurrent reports whether no change of a key was found since an epoch. It requires the lock.
func (v *Verifier) isCurrent(keyID string, epoch uint64) bool {
	return epoch >= v.since && epoch >= v.changed[keyID]
}

// readKept reads keys that changed, and forgets those that are not valid any more.
func (v *Verifier) readKept(ctx context.Context, ids []string, now time.Time, epoch uint64) error {
	keys, err := v.store.AllValid(ctx, ids, now)
	if err != nil {
		return err
	}
	valid := make(map[string]bool, len(keys))
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, key := range keys {
		valid[key.KeyID] = true
		v.keep(key, now, epoch)
	}
	for _, id := range ids {
		if k := v.cache[id]; k != nil && !k.current && !valid[id] {
			delete(v.cache, id)
		}
	}
	return nil
}

// sweep forgets, now and then, the credentials that are not established any more: their keys are not in use, or not
// valid. It requires the lock.
func (v *Verifier) sweep(now time.Time) {
	if now.Sub(v.swept) < sweepEvery {
		return
	}
	v.swept = now
	for id, k := range v.cache {
		if !v.uses(k, now) {
			delete(v.cache, id)
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
	if err := v.readEstablished(ctx, now); err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for id, k := range v.cache {
		if !v.trusts(k, now) { // what was just read is trusted, and so is what may not be recorded yet
			delete(v.cache, id)
		}
	}
	return nil
}

// readEstablished keeps the credentials that are established and valid by the store.
func (v *Verifier) readEstablished(ctx context.Context, now time.Time) error {
	v.mu.Lock()
	epoch := v.epoch
	v.mu.Unlock()
	// The store learns of a use an hour late at most, so it is queried for those of another hour.
	err := v.store.Used(ctx, now.Add(-establishedFor-recordEvery), now, func(use schema.APIKeyUse) {
		v.mu.Lock()
		defer v.mu.Unlock()
		k, at := v.keep(use.APIKey, now, epoch), use.LastUsedAt.Sub(v.began)
		k.used, k.recorded = max(k.used, at), max(k.recorded, at)
	})
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.established = max(v.established, epoch)
	return nil
}
