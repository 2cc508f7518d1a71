package auth_test

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlens/runlens/http/auth"
	"github.com/runlens/runlens/http/limit"
	"github.com/runlens/runlens/schema"
)

// A slowStore holds every look-up until it may answer, and counts those under way. It is like a store that hangs,
// which a real one cannot be made to do at will.
type slowStore struct {
	key            schema.APIKey
	running, total atomic.Int64
	most           atomic.Int64
	answer         chan struct{}
}

func (s *slowStore) Valid(ctx context.Context, _ string, _ time.Time) (schema.APIKey, error) {
	s.total.Add(1)
	s.most.Store(max(s.most.Load(), s.running.Add(1)))
	defer s.running.Add(-1)
	select {
	case <-s.answer:
		return s.key, nil
	case <-ctx.Done():
		return schema.APIKey{}, ctx.Err()
	}
}

func (*slowStore) AllValid(context.Context, []string, time.Time) ([]schema.APIKey, error) {
	return nil, nil
}

func (*slowStore) Changed(context.Context, any) (schema.APIKeyChanges, error) {
	return schema.APIKeyChanges{}, nil
}

func (*slowStore) Used(context.Context, time.Time, time.Time, func(schema.APIKeyUse)) error {
	return nil
}

func (*slowStore) RecordUses(context.Context, map[string]time.Time) error { return nil }

// Two thousand requests with one key take few look-ups, and leave the connections of the store to queries.
func TestLookupsWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text, c := auth.NewKey()
		store := &slowStore{
			key:    schema.APIKey{KeyID: c.KeyID, SecretHash: c.Hash, OrganizationID: "acme"},
			answer: make(chan struct{}),
		}
		v := auth.NewVerifier(store, limit.NewWindow(10_000, time.Minute), time.Now, slog.New(slog.DiscardHandler))
		parsed, err := auth.ParseKey(text)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var callers sync.WaitGroup
		for range 2000 {
			callers.Go(func() {
				if _, err := v.Verify(ctx, parsed, netip.Addr{}); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		close(store.answer)
		callers.Wait()
		if store.most.Load() > 8 || store.total.Load() > 8 {
			t.Errorf("%d look-ups at once, %d in all; want at most 8", store.most.Load(), store.total.Load())
		}
	})
}

// Who waits for a look-up until the deadline is told to come back.
func TestLookupsThatHaveNoTurnAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slowStore{answer: make(chan struct{})}
		v := auth.NewVerifier(store, limit.NewWindow(10_000, time.Minute), time.Now, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var limited atomic.Int64
		var callers sync.WaitGroup
		for range 100 {
			_, c := auth.NewKey()
			callers.Go(func() {
				var e *auth.LimitedError
				if _, err := v.Verify(ctx, c, netip.Addr{}); errors.As(err, &e) {
					limited.Add(1)
				}
			})
		}
		callers.Wait()
		if limited.Load() != 92 {
			t.Errorf("%d of 100 were limited, want all but the 8 that had their turn", limited.Load())
		}
	})
}
