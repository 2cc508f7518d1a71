package auth

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"golang.org/x/sync/errgroup"
)

// Verifiers verify credentials whose keys are in several stores, at least one. They share a budget and a clock.
//
// A store that does not answer costs its own keys their verification, and nobody else: each has look-ups of its own,
// and a key that one store shows to be valid does not wait for the others. That a credential is not valid takes all of
// them to say.
type Verifiers []*Verifier

// Verify finds whose credential a caller sent from an address. An expiry holds to the millisecond, a
// revocation within trustFor. The error is ErrUnauthorized, a *LimitedError, or a failure of a store.
func (all Verifiers) Verify(ctx context.Context, c Credential, from netip.Addr) (Principal, error) {
	now := all[0].now()
	for _, v := range all {
		if p, _, ok := v.trustedPrincipal(c, now, from); ok {
			return p, nil
		}
	}
	paid, err := all.admit(ctx, c, now, from)
	if err != nil {
		return Principal{}, err
	}
	found := all.lookUp(ctx, c, now, from)
	if !found.found && found.elsewhere {
		// The old store said so after the organization had been moved, the new one before. By now that knows.
		found = all.lookUp(ctx, c, now, from)
	}
	switch {
	case found.found:
		return found.principal, nil
	case found.err != nil:
		return Principal{}, found.err
	}
	return Principal{}, all.refuse(now, paid)
}

// lookUp looks a credential up in all stores at once. A failure of one counts if none has the key.
func (all Verifiers) lookUp(ctx context.Context, c Credential, now time.Time, from netip.Addr) lookup {
	if len(all) == 1 {
		return all[0].lookUp(ctx, c, now, from)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan lookup, len(all))
	for _, v := range all {
		go func() { results <- v.lookUp(ctx, c, now, from) }()
	}
	var none lookup
	var limited *LimitedError
	for range all {
		result := <-results
		if result.found {
			return result
		}
		none.elsewhere = none.elsewhere || result.elsewhere
		if none.err == nil || errors.As(none.err, &limited) && result.err != nil {
			none.err = result.err
		}
	}
	return none
}

// admit draws on the budget for a credential that is not established, and reports whether it did. When the budget
// is exhausted, every credential first waits for what the stores know: a key that another server established
// meanwhile is admitted, and one that was revoked is refused without a look-up, as an unknown one is.
func (all Verifiers) admit(
	ctx context.Context, c Credential, now time.Time, from netip.Addr,
) (paid bool, err error) {
	budget := all[0].budget
	if budget.Full(now) {
		var reloading errgroup.Group
		for _, v := range all {
			reloading.Go(func() error { return v.reload(ctx, now) })
		}
		err = reloading.Wait()
	}
	for _, v := range all {
		if v.isEstablished(c, now, from) {
			return false, nil
		}
	}
	if err != nil {
		return false, err
	}
	if ok, retryAfter := budget.Take(now); !ok {
		return false, &LimitedError{retryAfter}
	}
	return true, nil
}

// refuse is the error for a credential that turned out not to be valid. One that was taken for established, because it
// was revoked a moment ago, draws on the budget now.
func (all Verifiers) refuse(now time.Time, paid bool) error {
	if !paid {
		if ok, retryAfter := all[0].budget.Take(now); !ok {
			return &LimitedError{retryAfter}
		}
	}
	return ErrUnauthorized
}
