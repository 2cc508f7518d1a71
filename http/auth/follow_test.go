package auth

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlens/runlens/http/limit"
	"github.com/runlens/runlens/schema"
)

// A sharedShelf is a shelf that two goroutines may use.
type sharedShelf struct {
	mu sync.Mutex
	*shelf
}

func (s *sharedShelf) do(what func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	what()
}

func (s *sharedShelf) Valid(ctx context.Context, id string, at time.Time) (key schema.APIKey, err error) {
	s.do(func() { key, err = s.shelf.Valid(ctx, id, at) })
	return key, err
}

func (s *sharedShelf) AllValid(ctx context.Context, ids []string, at time.Time) (keys []schema.APIKey, err error) {
	s.do(func() { keys, err = s.shelf.AllValid(ctx, ids, at) })
	return keys, err
}

func (s *sharedShelf) Changed(ctx context.Context, since any) (changes schema.APIKeyChanges, err error) {
	s.do(func() { changes, err = s.shelf.Changed(ctx, since) })
	return changes, err
}

func (s *sharedShelf) Used(ctx context.Context, since, at time.Time, each func(schema.APIKeyUse)) (err error) {
	s.do(func() { err = s.shelf.Used(ctx, since, at, each) })
	return err
}

func (s *sharedShelf) RecordUses(ctx context.Context, uses map[string]time.Time) (err error) {
	s.do(func() { err = s.shelf.RecordUses(ctx, uses) })
	return err
}

// follow has a verifier follow the store until it is cancelled.
func follow(t *testing.T, v *Verifier) (cancel func(), ended chan struct{}) {
	ctx, cancel := context.WithCancel(t.Context())
	ended = make(chan struct{})
	go func() {
		v.Follow(ctx)
		close(ended)
	}()
	return cancel, ended
}

// A server refreshes by itself, and goes on after refreshes that failed.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &sharedShelf{shelf: newShelf()}
		v := NewVerifier(store, limit.NewWindow(100, time.Minute), time.Now, quiet)
		c := store.add()
		store.uses[c.KeyID] = time.Now()
		refresh(t, v)
		cancel, ended := follow(t, v)
		lookups := 0
		wantAfter := func(wait time.Duration, want int) {
			t.Helper()
			time.Sleep(wait)
			synctest.Wait()
			err := verify(t, v, c)
			store.do(func() {
				if err != nil || store.lookups != lookups+want {
					t.Errorf("%d look-ups, want %d; %v", store.lookups-lookups, want, err)
				}
				lookups = store.lookups
			})
		}
		wantAfter(59*time.Second, 0)
		store.do(func() { store.during = func() error { return errors.New("no answer") } })
		wantAfter(10*time.Second, 1)
		store.do(func() { store.during = nil })
		wantAfter(10*time.Second, 0)
		store.do(func() { store.revoke(c, time.Now()) })
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if err := verify(t, v, c); !errors.Is(err, ErrUnauthorized) {
			t.Errorf("5 s after its revocation: %v", err)
		}
		cancel()
		<-ended
	})
}

// While the store is away for an hour, a server says so a few times, and then that it is back.
func TestAStoreThatIsAwayIsLoggedRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		store := &sharedShelf{shelf: newShelf()}
		v := NewVerifier(store, limit.NewWindow(100, time.Minute), time.Now, slog.New(slog.NewTextHandler(&log, nil)))
		refresh(t, v)
		cancel, ended := follow(t, v)
		for _, answer := range []func() error{func() error { return errors.New("away") }, nil} {
			store.do(func() { store.during = answer })
			time.Sleep(time.Hour)
		}
		cancel()
		<-ended
		if lines := strings.Count(log.String(), "\n"); lines != 8 || !strings.Contains(log.String(), "are read again") {
			t.Errorf("%d lines:\n%s", lines, &log)
		}
	})
}
