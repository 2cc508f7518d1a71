package auth

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlens/runlens/http/limit"
	"github.com/runlens/runlens/schema"
)

// After a change the keys that changed are read, those that this server keeps, and no other key is affected by it.
func TestOnlyKeysThatChangedAreReadAgain(t *testing.T) {
	v, shelf, clock := refreshed(t)
	revoked, rotated, others := shelf.add(), shelf.add(), []Credential{shelf.add(), shelf.add()}
	for _, c := range append(others, revoked, rotated) {
		if err := verify(t, v, c); err != nil {
			t.Fatal(err)
		}
	}
	clock.at = clock.at.Add(time.Hour)
	refresh(t, v)
	work := func(want ...string) {
		t.Helper()
		shelf.work = nil
		clock.at = clock.at.Add(refreshEvery)
		refresh(t, v)
		for _, c := range append(others, rotated) {
			if err := verify(t, v, c); err != nil {
				t.Error(err)
			}
		}
		shelf.work = slices.DeleteFunc(shelf.work, func(what string) bool { return what == "record" })
		if !slices.Equal(shelf.work, want) {
			t.Errorf("the work was %v, want %v", shelf.work, want)
		}
	}
	shelf.add()
	work("read changes") // nobody used that key
	shelf.revoke(revoked, clock.at)
	end := clock.at.Add(time.Hour)
	shelf.change(rotated, func(k *schema.APIKey) { k.ExpiresAt = &end })
	work("read changes", "read keys")
	work("read changes")
	if k := v.of(revoked); k != nil {
		t.Errorf("%+v is kept of a revoked key", k)
	}
	if k := v.of(rotated); k == nil || k.limits == nil || !k.limits.ExpiresAt.Equal(end) {
		t.Errorf("%+v is kept of a key that expires", k)
	}
	shelf.any = true
	work("read changes", "read uses")
	v.budget = limit.NewWindow(10_000, time.Minute)
	for range mostKept + 1 {
		if err := verify(t, v, shelf.add()); err != nil {
			t.Fatal(err)
		}
	}
	work("read changes", "read uses") // too many to be named
}

// A bigShelf has many keys, all of them used.
type bigShelf struct {
	*shelf
	keys int
}

func (s bigShelf) Used(_ context.Context, _, at time.Time, each func(schema.APIKeyUse)) error {
	for i := range s.keys {
		// As they come from the store: in texts of their own.
		id, organization := fmt.Sprintf("%0*d", keyIDLength, i), fmt.Sprintf("organization-%d", i)
		key := schema.APIKey{KeyID: id, OrganizationID: schema.OrganizationID(organization),
			Scopes: []string{strings.Clone(ScopeAnalyticsRead)}}
		key.SecretHash[0] = byte(i)
		each(schema.APIKeyUse{APIKey: key, LastUsedAt: at})
	}
	return nil
}

// What is kept of a key takes at most 200 bytes, whatever else was read with it.
func TestMemoryOfAKey(t *testing.T) {
	const keys = 100_000
	v := NewVerifier(bigShelf{newShelf(), keys}, limit.NewWindow(100, time.Minute), time.Now, quiet)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	refresh(t, v)
	runtime.GC()
	runtime.ReadMemStats(&after)
	if len(v.cache) != keys {
		t.Fatalf("%d keys are kept", len(v.cache))
	}
	if bytes := (after.HeapAlloc - before.HeapAlloc) / keys; bytes > 200 {
		t.Errorf("%d bytes a key", bytes)
	}
	runtime.KeepAlive(v)
}

// The established keys are read for as long as it takes, of a million of them. Meanwhile changes are read as ever: a
// key that changed in between is not taken for what it was, and the others need no look-up when they are read.
func TestChangesAreReadWhileEstablishedKeysAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slowUses{sharedShelf: &sharedShelf{shelf: newShelf()}}
		v := NewVerifier(store, limit.NewWindow(100, time.Minute), time.Now, quiet)
		refresh(t, v)
		revoked, kept := store.add(), store.add()
		store.uses[revoked.KeyID], store.uses[kept.KeyID] = time.Now(), time.Now()
		store.any, store.takes = true, 10*time.Second
		cancel, ended := follow(t, v)
		time.Sleep(5 * time.Second)
		store.do(func() { store.revoke(revoked, time.Now()) })
		time.Sleep(15 * time.Second)
		synctest.Wait()
		store.do(func() { store.lookups = 0 })
		if err := verify(t, v, kept); err != nil || store.lookups != 0 {
			t.Errorf("%v after %d look-ups", err, store.lookups)
		}
		if err := verify(t, v, revoked); !errors.Is(err, ErrUnauthorized) || store.lookups != 1 {
			t.Errorf("revoked while keys were read: %v after %d look-ups", err, store.lookups)
		}
		cancel()
		<-ended
	})
}

// A slowUses is a shelf whose uses take time to be passed on after they were read.
type slowUses struct {
	*sharedShelf
	takes time.Duration
}

func (s *slowUses) Used(ctx context.Context, since, at time.Time, each func(schema.APIKeyUse)) error {
	var uses []schema.APIKeyUse
	err := s.sharedShelf.Used(ctx, since, at, func(use schema.APIKeyUse) { uses = append(uses, use) })
	time.Sleep(s.takes)
	for _, use := range uses {
		each(use)
	}
	return errors.Join(err, ctx.Err())
}

// The uses of many keys are recorded in one insert a second, those that the store does not take with the next ones, and
// the last ones when the server ends.
func TestUsesAreRecordedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &inserts{sharedShelf: &sharedShelf{shelf: newShelf()}}
		v := NewVerifier(store, limit.NewWindow(1000, time.Minute), time.Now, quiet)
		refresh(t, v)
		cancel, ended := follow(t, v)
		used := map[string]time.Time{}
		use := func(keys int, inserts int, after time.Duration) {
			t.Helper()
			for range keys {
				c := store.add()
				if _, err := v.Verify(t.Context(), c, office); err != nil {
					t.Fatal(err)
				}
				used[c.KeyID] = time.Now()
			}
			time.Sleep(after)
			synctest.Wait()
			store.do(func() {
				if store.inserts != inserts || !maps.Equal(store.uses, used) {
					t.Errorf("%d inserts, want %d; %d of %d keys", store.inserts, inserts, len(store.uses), len(used))
				}
				store.inserts = 0
			})
		}
		use(300, 1, recordPause)
		use(0, 0, 10*recordPause)
		use(20, 1, recordPause)
		store.do(func() { store.refuses = 2 })
		use(20, 3, recordPause+2*recordPatience)
		use(1, 1, recordPause)
		c := store.add()
		if _, err := v.Verify(t.Context(), c, office); err != nil {
			t.Fatal(err)
		}
		used[c.KeyID] = time.Now()
		cancel()
		<-ended
		use(0, 1, 0)
	})
}

// An inserts counts how often uses were to be recorded, some of which it refuses.
type inserts struct {
	*sharedShelf
	inserts, refuses int
}

func (s *inserts) RecordUses(ctx context.Context, uses map[string]time.Time) (err error) {
	s.do(func() {
		if s.inserts++; s.refuses > 0 {
			s.refuses--
			err = errors.New("disk full")
			return
		}
		maps.Copy(s.uses, uses)
	})
	return err
}
