package schema

import "time"

// An APIKey is a key as the store keeps it. The text of a key is kept nowhere.
type APIKey struct {
	KeyID          string
	OrganizationID OrganizationID
	Name           string
	Scopes         []string
	SecretHash     [32]byte // SHA-256
	CreatedAt      time.Time
	RevokedAt      *time.Time // nil while the key is valid
}

// An APIKeyUse says when a key last verified.
type APIKeyUse struct {
	KeyID      string
	SecretHash [32]byte
	LastUsedAt time.Time
}
