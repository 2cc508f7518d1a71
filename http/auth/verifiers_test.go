package auth

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlens/runlens/http/limit"
	"github.com/runlens/runlens/schema"
)

// A sick shelf fails, or waits until its caller gives up.
type sickShelf struct {
	*shelf
	err error // nil to wait
}

func (s *sickShelf) Valid(ctx context.Context, _ string, _ time.Time) (schema.APIKey, error) {
	if s.err == nil {
		<-ctx.Done()
		return schema.APIKey{}, ctx.Err()
	}
	return schema.APIKey{}, s.err
}

func (s *sickShelf) Changed(context.Context, any) (schema.APIKeyChanges, error) {
	return schema.APIKeyChanges{}, errors.New("away")
}

// A movedShelf says of its keys, so many times, that their organizations are in another store.
type movedShelf struct {
	*shelf
	times int
}

func (s *movedShelf) Valid(ctx context.Context, id string, at time.Time) (schema.APIKey, error) {
	key, err := s.shelf.Valid(ctx, id, at)
	if s.times--; s.times >= 0 && key.KeyID != "" {
		err = ErrElsewhere
	}
	return key, err
}

// The key of an organization that is moved between the look-ups in the old store and the new one is valid all the time.
func TestAKeyThatIsMoved(t *testing.T) {
	clock := newClock()
	from, to := &movedShelf{newShelf(), 1000}, &movedShelf{newShelf(), 1}
	c := from.add()
	to.keys = from.keys
	budget := limit.NewWindow(4, time.Minute)
	all := Verifiers{NewVerifier(from, budget, clock.now, quiet), NewVerifier(to, budget, clock.now, quiet)}
	if _, err := all.Verify(t.Context(), c, office); err != nil {
		t.Error(err)
	}
	if _, err := all.Verify(t.Context(), invented(), office); !errors.Is(err, ErrUnauthorized) {
		t.Errorf("an unknown key: %v", err)
	}
}

// What is kept of a key counts only while its organization is in the store: else the store says where it is.
func TestAKeptKeyOfAnOrganizationThatLeft(t *testing.T) {
	clock := newClock()
	store, here := &movedShelf{shelf: newShelf()}, true
	c := store.add()
	v := NewVerifier(store, limit.NewWindow(4, time.Minute), clock.now, quiet)
	v.Only(func(schema.OrganizationID) bool { return here })
	if err := verify(t, v, c); err != nil {
		t.Fatal(err)
	}
	here, store.times = false, 2
	if err := verify(t, v, c); !errors.Is(err, ErrUnauthorized) {
		t.Errorf("after the organization left: %v", err)
	}
	here = true
	if err := verify(t, v, c); err != nil {
		t.Errorf("after it came back: %v", err)
	}
}

// Keys of two stores verify, each by its own one, and what no store has is not valid. One draw on the budget pays for
// the look-ups in both.
func TestKeysOfSeveralStores(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, clock := newShelf(), newShelf(), newClock()
		budget := limit.NewWindow(4, time.Minute)
		all := Verifiers{NewVerifier(a, budget, clock.now, quiet), NewVerifier(b, budget, clock.now, quiet)}
		verify := func(c Credential) (lookups int, err error) {
			before := a.lookups + b.lookups
			_, err = all.Verify(t.Context(), c, office)
			synctest.Wait() // for look-ups that nobody waits for
			for _, v := range all {
				v.record(t.Context())
			}
			return a.lookups + b.lookups - before, err
		}
		ofA, ofB, revoked := a.add(), b.add(), b.add()
		b.revoke(revoked, clock.at)
		for i := range 3 {
			for _, c := range []Credential{ofA, ofB} {
				if lookups, err := verify(c); err != nil || lookups > 2 || i > 0 && lookups != 0 {
					t.Fatalf("%d look-ups, %v", lookups, err)
				}
			}
		}
		for name, c := range map[string]Credential{"unknown": invented(), "revoked": revoked} {
			if lookups, err := verify(c); !errors.Is(err, ErrUnauthorized) || lookups != 2 {
				t.Errorf("%s: %v after %d look-ups", name, err, lookups)
			}
		}
		var exhausted *LimitedError
		if _, err := verify(invented()); !errors.As(err, &exhausted) {
			t.Errorf("beyond the budget: %v", err)
		}
		clock.at = clock.at.Add(5 * time.Second)
		for _, c := range []Credential{ofA, ofB} {
			if _, err := verify(c); err != nil {
				t.Errorf("an established key beyond the budget: %v", err)
			}
		}
	})
}

// A store that fails, or that never answers, costs nobody whose key is in another one anything. Of a key that no other
// store has it is not known whether it is valid.
func TestAStoreThatIsAway(t *testing.T) {
	down := errors.New("down")
	for name, err := range map[string]error{"fails": down, "hangs": nil} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				well, sick := newShelf(), &sickShelf{newShelf(), err}
				budget := limit.NewWindow(100, time.Minute)
				all := Verifiers{NewVerifier(sick, budget, time.Now, quiet), NewVerifier(well, budget, time.Now, quiet)}
				began := time.Now()
				for range 2 * maxLookups { // new ones, each with a look-up
					if _, err := all.Verify(t.Context(), well.add(), office); err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
				}
				if took := time.Since(began); took != 0 {
					t.Errorf("keys of the other store took %v", took)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_, failed := all.Verify(ctx, invented(), office)
				var exhausted *LimitedError
				if failed == nil || errors.Is(failed, ErrUnauthorized) || errors.As(failed, &exhausted) {
					t.Errorf("an unknown key: %v", failed)
				}
			})
		})
	}
}
