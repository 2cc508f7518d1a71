package auth

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/runlens/runlens/schema"
)

// A shelf is a Store in memory that counts look-ups and keeps what it was asked to do.
type shelf struct {
	keys    map[string]schema.APIKey
	uses    map[string]time.Time
	lookups int
	work    []string
	changed []string // ids of keys, as they were changed
	// During a reading of the changes, after the store found them.
	during func() error
	// any makes the next reading of the changes not know which keys changed.
	any bool
	// unread is the error of reading uses.
	unread error
}

func newShelf() *shelf { return &shelf{keys: map[string]schema.APIKey{}, uses: map[string]time.Time{}} }

func (s *shelf) Valid(_ context.Context, id string, at time.Time) (schema.APIKey, error) {
	s.lookups++
	s.work = append(s.work, "look up")
	if !s.valid(id, at) {
		return schema.APIKey{}, nil
	}
	return s.keys[id], nil
}

func (s *shelf) valid(id string, at time.Time) bool {
	key := s.keys[id]
	return key.RevokedAt == nil && (key.ExpiresAt == nil || at.Before(*key.ExpiresAt))
}

func (s *shelf) AllValid(_ context.Context, ids []string, at time.Time) (valid []schema.APIKey, _ error) {
	s.work = append(s.work, "read keys")
	if s.unread != nil {
		return nil, s.unread
	}
	for _, id := range ids {
		if s.valid(id, at) {
			valid = append(valid, s.keys[id])
		}
	}
	return valid, nil
}

func (s *shelf) Used(_ context.Context, since, at time.Time, each func(schema.APIKeyUse)) error {
	s.work = append(s.work, "read uses")
	if s.unread != nil {
		return s.unread
	}
	for id, last := range s.uses {
		if key := s.keys[id]; s.valid(id, at) && !last.Before(since) {
			each(schema.APIKeyUse{APIKey: key, LastUsedAt: last})
		}
	}
	return nil
}

func (s *shelf) Changed(_ context.Context, since any) (schema.APIKeyChanges, error) {
	s.work = append(s.work, "read changes")
	n, known := since.(int)
	changes := schema.APIKeyChanges{State: len(s.changed), All: !known || s.any}
	if s.any = false; !changes.All {
		changes.KeyIDs = slices.Clone(s.changed[n:])
	}
	if s.during != nil {
		return changes, s.during()
	}
	return changes, nil
}

func (s *shelf) RecordUses(_ context.Context, uses map[string]time.Time) error {
	s.work = append(s.work, "record")
	maps.Copy(s.uses, uses)
	return nil
}

func (s *shelf) add(scopes ...string) Credential {
	_, c := NewKey()
	s.changed = append(s.changed, c.KeyID)
	s.keys[c.KeyID] = schema.APIKey{KeyID: c.KeyID, SecretHash: c.Hash, OrganizationID: "acme", Scopes: scopes}
	return c
}

func (s *shelf) revoke(c Credential, at time.Time) {
	s.change(c, func(k *schema.APIKey) { k.RevokedAt = &at })
}

func (s *shelf) change(c Credential, how func(*schema.APIKey)) {
	s.changed = append(s.changed, c.KeyID)
	key := s.keys[c.KeyID]
	how(&key)
	s.keys[c.KeyID] = key
}
