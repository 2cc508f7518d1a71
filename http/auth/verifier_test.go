package auth

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"github.com/runlens/runlens/http/limit"
)

var (
	office = netip.MustParseAddr("192.0.2.7")
	home   = netip.MustParseAddr("198.51.100.7")
)

var quiet = slog.New(slog.DiscardHandler)

// A clock that tests move.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func newClock() *clock { return &clock{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)} }

func verify(t *testing.T, v *Verifier, c Credential) error {
	t.Helper()
	_, err := v.Verify(context.Background(), c, office)
	v.record(context.Background())
	return err
}

func invented() Credential { _, c := NewKey(); return c }

func TestPrincipal(t *testing.T) {
	shelf, clock := newShelf(), newClock()
	v := NewVerifier(shelf, limit.NewWindow(100, time.Minute), clock.now, quiet)
	c := shelf.add(ScopeAnalyticsRead)
	for range 2 { // the second time from memory
		p, err := v.Verify(context.Background(), c, office)
		v.record(context.Background())
		if err != nil || p.Organization() != "acme" || p.KeyID != c.KeyID || !p.May(ScopeAnalyticsRead) || p.May("other") {
			t.Fatalf("%+v, %v", p, err)
		}
	}
	if shelf.lookups != 1 {
		t.Errorf("%d look-ups, want 1", shelf.lookups)
	}
}

// Spec section 8: the budget is for credentials without a successful verification in seven days.
func TestSevenDays(t *testing.T) {
	shelf, clock := newShelf(), newClock()
	const budget = 3
	v := NewVerifier(shelf, limit.NewWindow(budget, time.Minute), clock.now, quiet)
	established, fresh, revoked := shelf.add(), shelf.add(), shelf.add()
	for _, c := range []Credential{established, revoked} {
		if err := verify(t, v, c); err != nil {
			t.Fatal(err)
		}
	}
	shelf.revoke(revoked, clock.at)
	clock.at = clock.at.Add(5 * time.Second)
	if err := verify(t, v, revoked); !errors.Is(err, ErrUnauthorized) {
		t.Fatal(err)
	}
	flood := func() {
		for range budget {
			verify(t, v, invented())
		}
	}
	expectLimited := func(name string, c Credential) {
		t.Helper()
		var exhausted *LimitedError
		before := shelf.lookups
		if err := verify(t, v, c); !errors.As(err, &exhausted) || exhausted.RetryAfter <= 0 ||
			exhausted.RetryAfter > time.Minute {
			t.Errorf("%s: %v", name, err)
		}
		if shelf.lookups != before {
			t.Errorf("%s was looked up all the same", name)
		}
	}
	flood()
	expectLimited("an invented key", invented())
	expectLimited("a new valid key", fresh)
	expectLimited("a revoked key that had been established", revoked)
	if err := verify(t, v, established); err != nil {
		t.Errorf("an established key is affected by the flood: %v", err)
	}

	clock.at = clock.at.Add(7*24*time.Hour - 10*time.Second)
	flood()
	expectLimited("an invented key, for which the established ones are read again", invented())
	if err := verify(t, v, established); err != nil {
		t.Errorf("within seven days: %v", err)
	}
	clock.at = clock.at.Add(7*24*time.Hour + time.Second)
	flood()
	expectLimited("a key that was not used for seven days", established)
}

// A key that was found to be revoked draws on the budget as an unknown one does, before the established ones are read.
func TestARevokedKeyIsEstablishedNoMore(t *testing.T) {
	shelf, clock := newShelf(), newClock()
	v := NewVerifier(shelf, limit.NewWindow(100, time.Minute), clock.now, quiet)
	c := shelf.add()
	if err := verify(t, v, c); err != nil {
		t.Fatal(err)
	}
	shelf.revoke(c, clock.at)
	clock.at = clock.at.Add(trustFor)
	if err := verify(t, v, c); !errors.Is(err, ErrUnauthorized) {
		t.Fatal(err)
	}
	if v.isEstablished(c, clock.at, office) {
		t.Error("it is established")
	}
}

// The rule survives a restart, and holds for keys that another server verified.
func TestEstablishedKeysAreShared(t *testing.T) {
	shelf, clock := newShelf(), newClock()
	first := NewVerifier(shelf, limit.NewWindow(100, time.Minute), clock.now, quiet)
	early, late := shelf.add(), shelf.add()
	if err := verify(t, first, early); err != nil {
		t.Fatal(err)
	}
	clock.at = clock.at.Add(time.Hour)
	second := NewVerifier(shelf, limit.NewWindow(1, time.Minute), clock.now, quiet)
	if err := second.Refresh(context.Background()); err != nil {
		t.Fatal(err)
	}
	clock.at = clock.at.Add(time.Minute)
	if err := verify(t, first, late); err != nil {
		t.Fatal(err)
	}
	verify(t, second, invented()) // the budget is gone
	for name, c := range map[string]Credential{"verified before the start": early, "verified elsewhere since": late} {
		if err := verify(t, second, c); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The store learns of a key's use about once an hour.
func TestUsesAreRecordedNowAndThen(t *testing.T) {
	shelf, clock := newShelf(), newClock()
	v := NewVerifier(shelf, limit.NewWindow(100, time.Minute), clock.now, quiet)
	c := shelf.add()
	began := clock.at
	for range 100 { // 50 minutes
		if err := verify(t, v, c); err != nil {
			t.Fatal(err)
		}
		clock.at = clock.at.Add(30 * time.Second)
	}
	if !shelf.uses[c.KeyID].Equal(began) {
		t.Errorf("recorded %v within the hour of %v", shelf.uses[c.KeyID], began)
	}
	clock.at = clock.at.Add(time.Hour)
	if err := verify(t, v, c); err != nil || !shelf.uses[c.KeyID].Equal(clock.at) {
		t.Errorf("recorded %v, %v, want %v", shelf.uses[c.KeyID], err, clock.at)
	}
}

// What is kept grows with keys that exist, never with invented ones.
func TestInventedKeysLeaveNothingBehind(t *testing.T) {
	shelf, clock := newShelf(), newClock()
	v := NewVerifier(shelf, limit.NewWindow(100_000, time.Minute), clock.now, quiet)
	for range 10_000 {
		verify(t, v, invented())
	}
	if n := len(v.cache); n != 0 {
		t.Errorf("%d entries", n)
	}
}

// A store that cannot be written to does not lock anybody out.
func TestAUseThatCannotBeRecorded(t *testing.T) {
	clock := newClock()
	full := fullShelf{newShelf()}
	v := NewVerifier(full, limit.NewWindow(100, time.Minute), clock.now, quiet)
	if err := verify(t, v, full.add()); err != nil {
		t.Error(err)
	}
}

type fullShelf struct{ *shelf }

func (fullShelf) RecordUses(context.Context, map[string]time.Time) error {
	return errors.New("disk full")
}
