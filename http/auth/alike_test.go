package auth

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/runlens/runlens/http/limit"
	"github.com/runlens/runlens/schema"
)

// A purse is a Budget that keeps in the shelf's list what was drawn on it.
type purse struct {
	*limit.Window
	shelf *shelf
}

func (p purse) Take(now time.Time) (bool, time.Duration) {
	p.shelf.work = append(p.shelf.work, "draw")
	return p.Window.Take(now)
}

func (s *shelf) limited(limits schema.KeyLimits) Credential {
	c := s.add()
	key := s.keys[c.KeyID]
	key.KeyLimits = limits
	s.keys[c.KeyID] = key
	return c
}

// invalid are credentials that are not valid at clock + 5 s from home. Each was verified on v before, where it could
// be.
func invalid(t *testing.T, v *Verifier, shelf *shelf, clock *clock) map[string]Credential {
	t.Helper()
	soon := clock.at.Add(time.Second)
	never, revoked, wrong := shelf.add(), shelf.add(), shelf.add()
	expired := shelf.limited(schema.KeyLimits{ExpiresAt: &soon})
	elsewhere := shelf.limited(schema.KeyLimits{Networks: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}})
	for _, c := range []Credential{revoked, expired, elsewhere, wrong} {
		if err := verify(t, v, c); err != nil {
			t.Fatal(err)
		}
	}
	shelf.revoke(never, clock.at)
	shelf.revoke(revoked, clock.at)
	wrong.Hash = invented().Hash
	return map[string]Credential{
		"revoked and never used": never, "revoked": revoked, "expired": expired, "used from elsewhere": elsewhere,
		"wrong secret": wrong,
	}
}

// Spec 5.3: a credential that is not valid causes the same work as an unknown one, while the budget lasts
// and when it is exhausted, at the first try and later.
func TestInvalidCredentialsCauseTheSameWork(t *testing.T) {
	const ample = 1000
	for name, c := range map[string]struct {
		budget    int
		refreshed []time.Duration // after the keys became invalid
	}{
		"in the budget": {ample, nil}, "budget exhausted": {8, nil},
		"in the budget, refreshed":    {ample, []time.Duration{time.Second, trustFor, 5 * time.Second}},
		"budget exhausted, refreshed": {8, []time.Duration{time.Second, trustFor, 5 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			budget := c.budget
			shelf, clock := newShelf(), newClock()
			v := NewVerifier(shelf, purse{limit.NewWindow(budget, time.Minute), shelf}, clock.now, quiet)
			credentials := invalid(t, v, shelf, clock)
			began := clock.at
			for _, after := range c.refreshed {
				shelf.add() // something to read
				clock.at = began.Add(after)
				refresh(t, v)
				if after < trustFor {
					clock.at = began.Add(trustFor - time.Millisecond)
					if err := verify(t, v, credentials["revoked"]); err != nil {
						t.Fatal(err)
					}
				}
			}
			clock.at = began.Add(5 * time.Second)
			for budget != ample && !v.budget.Full(clock.at) {
				v.budget.Take(clock.at)
			}
			work := func(c Credential) (string, []string) {
				clock.at = clock.at.Add(10 * time.Millisecond)
				shelf.work = nil
				_, err := v.Verify(context.Background(), c, home)
				v.record(context.Background())
				var exhausted *LimitedError
				switch {
				case errors.Is(err, ErrUnauthorized):
					return "unauthorized", shelf.work
				case errors.As(err, &exhausted):
					return "limited", shelf.work
				}
				t.Fatalf("got %v", err)
				return "", nil
			}
			work(invented()) // reads the uses, if it is their turn
			wantOutcome, want := work(invented())
			if wantOutcome != map[bool]string{true: "unauthorized", false: "limited"}[budget == ample] {
				t.Fatalf("an unknown credential is %s", wantOutcome)
			}
			for range 3 {
				for name, c := range credentials {
					outcome, got := work(c)
					slices.Sort(got) // a key that was revoked a moment ago draws on the budget after its look-up
					slices.Sort(want)
					if outcome != wantOutcome || !slices.Equal(got, want) {
						t.Errorf("%s: %s after %v; an unknown one: %s after %v", name, outcome, got, wantOutcome, want)
					}
				}
			}
		})
	}
}

// An expiry holds to the millisecond, in spite of what the server caches.
func TestExpiryIsExact(t *testing.T) {
	shelf, clock := newShelf(), newClock()
	v := NewVerifier(shelf, limit.NewWindow(100, time.Minute), clock.now, quiet)
	end := clock.at.Add(time.Second)
	c := shelf.limited(schema.KeyLimits{ExpiresAt: &end})
	for _, at := range []time.Time{clock.at, end.Add(-time.Millisecond)} {
		clock.at = at
		if err := verify(t, v, c); err != nil {
			t.Errorf("at %v: %v", at, err)
		}
	}
	clock.at = end
	if err := verify(t, v, c); !errors.Is(err, ErrUnauthorized) {
		t.Errorf("at its end: %v", err)
	}
}

// A key with networks is valid there and nowhere else, and who uses it from elsewhere does not disturb those who may.
func TestNetworks(t *testing.T) {
	shelf, clock := newShelf(), newClock()
	v := NewVerifier(shelf, limit.NewWindow(100, time.Minute), clock.now, quiet)
	c := shelf.limited(
		schema.KeyLimits{
			Networks: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8::/32")},
		},
	)
	for _, from := range []struct {
		address netip.Addr
		valid   bool
	}{
		{office, true}, {home, false}, {netip.MustParseAddr("::ffff:192.0.2.9"), true},
		{netip.MustParseAddr("2001:db8::1"), true},
		{netip.MustParseAddr("2001:db9::1"), false}, {netip.Addr{}, false}, {office, true},
	} {
		_, err := v.Verify(context.Background(), c, from.address)
		v.record(context.Background())
		if (err == nil) != from.valid ||
			err != nil && !errors.Is(err, ErrUnauthorized) {
			t.Errorf("from %v: %v", from.address, err)
		}
	}
	before := shelf.lookups
	if err := verify(t, v, c); err != nil || shelf.lookups != before {
		t.Errorf("from its network: %v, %d look-ups", err, shelf.lookups-before)
	}
}
