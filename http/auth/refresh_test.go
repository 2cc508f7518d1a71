package auth

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/runlens/runlens/http/limit"
	"github.com/runlens/runlens/olap/olaptest"
	"github.com/runlens/runlens/schema"
)

func refreshed(t *testing.T) (*Verifier, *shelf, *clock) {
	t.Helper()
	shelf, clock := newShelf(), newClock()
	v := NewVerifier(shelf, limit.NewWindow(100, time.Minute), clock.now, quiet)
	refresh(t, v)
	return v, shelf, clock
}

func refresh(t *testing.T, v *Verifier) {
	t.Helper()
	if err := v.Refresh(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// While no key changes, a used key causes no work of its own: one fingerprint stands for all keys. Its use is kept.
func TestAUsedKeyIsNotLookedUpAgain(t *testing.T) {
	v, shelf, clock := refreshed(t)
	c := shelf.add()
	refresh(t, v)
	if err := verify(t, v, c); err != nil {
		t.Fatal(err)
	}
	shelf.work = nil
	began, refreshes := clock.at, 0
	for clock.at.Before(began.Add(8 * 24 * time.Hour)) {
		clock.at = clock.at.Add(refreshEvery)
		refresh(t, v)
		refreshes++
		clock.at = clock.at.Add(trustFor - time.Millisecond)
		if err := verify(t, v, c); err != nil {
			t.Fatal(err)
		}
	}
	work := map[string]int{}
	for _, what := range shelf.work {
		work[what]++
	}
	if work["read changes"] != refreshes || len(shelf.work) != refreshes+work["record"] {
		t.Errorf("%v in %d refreshes", work, refreshes)
	}
	if behind := clock.at.Sub(shelf.uses[c.KeyID]); behind > recordEvery {
		t.Errorf("the last use that was recorded is %v old", behind)
	}
	if !v.isEstablished(c, clock.at, office) {
		t.Error("a key that is used all the time is not established")
	}
}

// Contract 2, by another process: whenever in the time between two refreshes it happens, and whether the statement
// of a refresh sees it or not.
func TestARevocationElsewhereIsRefreshed(t *testing.T) {
	for _, missed := range []bool{false, true} {
		for after := time.Duration(0); after <= refreshEvery; after += 100 * time.Millisecond {
			v, shelf, clock := refreshed(t)
			c := shelf.add()
			if err := verify(t, v, c); err != nil {
				t.Fatal(err)
			}
			refresh(t, v) // reads the key with its use
			began := clock.at
			clock.at = began.Add(after)
			revoke := func() error {
				shelf.revoke(c, clock.at)
				return nil
			}
			if missed {
				shelf.during = revoke
				refresh(t, v)
				shelf.during = nil
			} else if err := revoke(); err != nil {
				t.Fatal(err)
			}
			revoked := clock.at
			for clock.at.Before(revoked.Add(5 * time.Second)) {
				clock.at = clock.at.Add(refreshEvery)
				refresh(t, v)
			}
			clock.at = revoked.Add(5 * time.Second)
			if err := verify(t, v, c); !errors.Is(err, ErrUnauthorized) {
				t.Errorf("revoked %v after a refresh, missed: %v, and used 5 s later: %v", after, missed, err)
			}
		}
	}
}

// Without a refresh in time, each key is looked up as before.
func TestARefreshThatFailsLetsTrustLapse(t *testing.T) {
	v, shelf, clock := refreshed(t)
	c := shelf.add()
	if err := verify(t, v, c); err != nil {
		t.Fatal(err)
	}
	refresh(t, v)
	clock.at = clock.at.Add(refreshEvery)
	shelf.during = func() error { return errors.New("no answer") }
	if err := v.Refresh(context.Background()); err == nil {
		t.Fatal("the refresh did not fail")
	}
	before := shelf.lookups
	for lookups, at := range []time.Duration{trustFor - time.Millisecond, trustFor} {
		clock.at = newClock().at.Add(at)
		if err := verify(t, v, c); err != nil || shelf.lookups != before+lookups {
			t.Errorf("%v after the last refresh: %d look-ups, %v", at, shelf.lookups-before, err)
		}
	}
}

// If the established keys cannot be read after a change, the next refresh reads them, and no further one.
func TestEstablishedKeysAreReadAgainAfterAFailure(t *testing.T) {
	v, shelf, clock := refreshed(t)
	c := shelf.add()
	if err := verify(t, v, c); err != nil {
		t.Fatal(err)
	}
	shelf.revoke(c, clock.at)
	shelf.unread = errors.New("no answer")
	if err := v.Refresh(context.Background()); err == nil {
		t.Fatal("the refresh did not fail")
	}
	shelf.unread, shelf.work = nil, nil
	refresh(t, v)
	refresh(t, v)
	if !slices.Equal(shelf.work, []string{"read changes", "read uses", "read changes"}) {
		t.Errorf("the work was %v", shelf.work)
	}
}

// A process that is stopped during a refresh, or between two, trusts nothing when it goes on.
func TestAStoppedProcessTrustsNothing(t *testing.T) {
	for _, during := range []bool{false, true} {
		v, shelf, clock := refreshed(t)
		c := shelf.add()
		if err := verify(t, v, c); err != nil {
			t.Fatal(err)
		}
		refresh(t, v)
		stop := func() error {
			shelf.revoke(c, clock.at)
			clock.at = clock.at.Add(time.Hour)
			return nil
		}
		if during {
			shelf.during = stop
			refresh(t, v)
		} else if err := stop(); err != nil {
			t.Fatal(err)
		}
		if err := verify(t, v, c); !errors.Is(err, ErrUnauthorized) {
			t.Errorf("stopped during a refresh: %v; then %v", during, err)
		}
	}
}

// A machine that slept, during a refresh or after it, trusts nothing of before: its monotonic clock stood still.
func TestAMachineThatSleptTrustsNothing(t *testing.T) {
	for _, during := range []bool{false, true} {
		for name, slept := range map[string]func(time.Time) time.Time{
			"awake": func(at time.Time) time.Time { return at.Add(time.Second) },
			"slept": func(at time.Time) time.Time { return olaptest.Slept(at.Add(time.Second), time.Hour) },
		} {
			shelf, clock := newShelf(), &clock{time.Now()}
			v := NewVerifier(shelf, limit.NewWindow(100, time.Minute), clock.now, quiet)
			refresh(t, v)
			c := shelf.add()
			refresh(t, v)
			if err := verify(t, v, c); err != nil {
				t.Fatal(err)
			}
			sleeps := func() error {
				shelf.revoke(c, clock.at)
				clock.at = slept(clock.at)
				return nil
			}
			if during {
				shelf.during = sleeps
				refresh(t, v)
			} else if err := sleeps(); err != nil {
				t.Fatal(err)
			}
			if err := verify(t, v, c); (err == nil) != (name == "awake") {
				t.Errorf("%s during a refresh: %v; then %v", name, during, err)
			}
		}
	}
}

// A look-up that is slow may have read a key before it changed, although its answer comes after the refresh that
// found the change, or that any key may have changed.
func TestALookUpBelongsToTheEpochInWhichItWasSent(t *testing.T) {
	for _, any := range []bool{false, true} {
		_, shelf, clock := refreshed(t)
		slow := &slowShelf{shelf: shelf}
		v := NewVerifier(slow, limit.NewWindow(100, time.Minute), clock.now, quiet)
		refresh(t, v)
		c := shelf.add()
		refresh(t, v)
		slow.after = func() {
			shelf.revoke(c, clock.at)
			shelf.any = any
			refresh(t, v)
		}
		if err := verify(t, v, c); err != nil {
			t.Fatal(err)
		}
		slow.after = func() {}
		for range 3 {
			clock.at = clock.at.Add(refreshEvery)
			refresh(t, v)
		}
		if err := verify(t, v, c); !errors.Is(err, ErrUnauthorized) {
			t.Errorf("revoked during its look-up: %v", err)
		}
	}
}

// A slowShelf does something between reading a key and returning it.
type slowShelf struct {
	*shelf
	after func()
}

func (s *slowShelf) Valid(ctx context.Context, id string, at time.Time) (schema.APIKey, error) {
	key, err := s.shelf.Valid(ctx, id, at)
	s.after()
	return key, err
}

// An established key needs no statement after a start, and is as limited as before it.
func TestEstablishedKeysAreReadAtTheStart(t *testing.T) {
	_, shelf, clock := refreshed(t)
	end := clock.at.Add(4 * time.Hour)
	c := shelf.limited(schema.KeyLimits{ExpiresAt: &end, Networks: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}})
	key := shelf.keys[c.KeyID]
	key.Scopes = []string{ScopeAnalyticsRead}
	shelf.keys[c.KeyID] = key
	shelf.uses[c.KeyID] = clock.at
	clock.at = end.Add(-time.Millisecond)
	v := NewVerifier(shelf, limit.NewWindow(100, time.Minute), clock.now, quiet)
	refresh(t, v)
	p, err := v.Verify(context.Background(), c, office)
	v.record(context.Background())
	if err != nil || p.Organization() != "acme" || p.KeyID != c.KeyID || !p.May(ScopeAnalyticsRead) {
		t.Errorf("%+v, %v", p, err)
	}
	if shelf.lookups != 0 {
		t.Errorf("%d look-ups", shelf.lookups)
	}
	if _, err := v.Verify(context.Background(), c, home); !errors.Is(err, ErrUnauthorized) {
		t.Errorf("from another network: %v", err)
	}
	clock.at = end
	if err := verify(t, v, c); !errors.Is(err, ErrUnauthorized) {
		t.Errorf("at its end: %v", err)
	}
}

// A credential that nobody used for a week is not kept, whether its key is valid or not; one that is in use is.
func TestUnusedCredentialsAreForgotten(t *testing.T) {
	shelf, clock := newShelf(), newClock()
	v := NewVerifier(shelf, limit.NewWindow(100, time.Minute), clock.now, quiet)
	unused, revoked, used := shelf.add(), shelf.add(), shelf.add()
	for _, c := range []Credential{unused, revoked, used} {
		if err := verify(t, v, c); err != nil {
			t.Fatal(err)
		}
	}
	shelf.revoke(revoked, clock.at)
	for range 8 {
		clock.at = clock.at.Add(24 * time.Hour)
		if err := verify(t, v, used); err != nil {
			t.Fatal(err)
		}
		if err := v.Refresh(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if len(v.cache) != 1 || v.of(used) == nil {
		t.Errorf("%d credentials are kept, want the one in use", len(v.cache))
	}
}
