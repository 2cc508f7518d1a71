package worker

import (
	"time"

	"github.com/google/uuid"

	"github.com/runlens/runlens/ingest/source/postgres"
	"github.com/runlens/runlens/schema"
)

// maxRecent bounds the memory of the rows that were copied lately. What does not fit is copied again at
// every pass, which does no harm.
const maxRecent = 500_000

// An identity takes little memory, since there are many.
type identity struct {
	organization int32 // its number in recent.organizations
	id           uuid.UUID
}

// A version is what was read of a row.
type version struct {
	postgres.Key
	content uint64 // hash of all fields: a clock that is kept to the second gives several versions one updated_at
}

// A remembered version was copied as it is.
type remembered struct {
	at      int64 // updated_at in microseconds
	content uint64
}

// recent knows which rows of the overlap have been copied as they are.
type recent struct {
	rows          map[identity]remembered
	organizations map[schema.OrganizationID]int32
	from          time.Time // rows that changed before will not be read again
}

func newRecent() *recent {
	return &recent{rows: map[identity]remembered{}, organizations: map[schema.OrganizationID]int32{}}
}

func (r *recent) identity(key postgres.Key) identity {
	organization, ok := r.organizations[key.Organization]
	if !ok {
		organization = int32(len(r.organizations))
		r.organizations[key.Organization] = organization
	}
	id, err := uuid.Parse(key.ID)
	if err != nil { // of a record that is rejected
		id = uuid.NewSHA1(uuid.Nil, []byte(key.ID))
	}
	return identity{organization, id}
}

func (r *recent) has(v version) bool {
	copied, ok := r.rows[r.identity(v.Key)]
	return ok && copied == remembered{v.At.UnixMicro(), v.content}
}

func (r *recent) add(versions []version) {
	for _, v := range versions {
		if len(r.rows) < maxRecent && !v.At.Before(r.from) && !v.Timeless() {
			r.rows[r.identity(v.Key)] = remembered{v.At.UnixMicro(), v.content}
		}
	}
}

// drop forgets rows whatever their time, so that they are copied when they are read next.
func (r *recent) drop(organization schema.OrganizationID, ids []uuid.UUID) {
	number, ok := r.organizations[organization]
	if !ok {
		return
	}
	for _, id := range ids {
		delete(r.rows, identity{number, id})
	}
}

// forget drops what changed before an instant and will not be read again.
func (r *recent) forget(before time.Time) {
	r.from = before
	for id, copied := range r.rows {
		if copied.at < before.UnixMicro() {
			delete(r.rows, id)
		}
	}
}
