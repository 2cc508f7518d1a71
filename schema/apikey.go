package schema

import (
	"net/netip"
	"slices"
	"time"
)

// MaxKeyNetworks is the most networks of one key, inclusive. It bounds the row that a look-up returns.
const MaxKeyNetworks = 16

// An APIKey is a key as the store keeps it. The text of a key is kept nowhere.
type APIKey struct {
	KeyID          string
	OrganizationID OrganizationID
	Name           string
	Scopes         []string
	SecretHash     [32]byte // SHA-256
	CreatedAt      time.Time
	RevokedAt      *time.Time // nil while the key is not revoked
	KeyLimits
}

// KeyLimits say when and from where a key is valid, and for which rows.
type KeyLimits struct {
	ExpiresAt   *time.Time     // exclusive: the key is invalid from this instant on; nil for never
	Networks    []netip.Prefix // from which it is valid, at most MaxKeyNetworks; none for everywhere
	Restriction *Restriction   // nil for all rows of the organization
}

// Permit reports whether a key with these limits is valid at an instant for a caller at an address. The zero address is
// no address of a client: only keys without networks are valid there.
func (l KeyLimits) Permit(at time.Time, from netip.Addr) bool {
	if l.ExpiresAt != nil && !at.Before(*l.ExpiresAt) {
		return false
	}
	from = from.Unmap().WithZone("")
	return len(l.Networks) == 0 || slices.ContainsFunc(l.Networks, func(n netip.Prefix) bool { return n.Contains(from) })
}

// An APIKeyUse says when a key last verified. Of the key it has id, organization, scopes, hash and limits.
type APIKeyUse struct {
	APIKey
	LastUsedAt time.Time
}

// APIKeyChanges say which keys may have changed from one state to a later one.
type APIKeyChanges struct {
	State  any // the later one: for whoever reads the next changes, and nobody else
	All    bool
	KeyIDs []string // where it is not All
}
