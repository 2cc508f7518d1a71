// Package purged has the list of the people that were purged, and what of their records stays out of the store until
// the operator lifts it (contract 28): attribution records whose occurred_at is not after the purge, and the initiator
// of runs whose created_at is not after it. Whoever stores records, or compares them, applies the list.
//
// The store has a keyed hash of each person's organization and identifier, no identifier (schema.PurgedPerson).
package purged

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/schema"
	"github.com/runlens/runlens/schema/sql"
)

// A List is the list at one moment. It does not change, and nil is an empty one.
type List struct {
	version uint64
	keys    []key
	entries map[[16]byte]entry
	active  int // entries that are not lifted
}

// An entry is a row of the list.
type entry struct {
	revision uint64
	until    normalize.Instant // inclusive
	lifted   bool
}

// key is one of those of the hash (schema.SecretPurgedPeople).
type key struct{ k0, k1 uint64 }

func (k key) person(organization schema.OrganizationID, identifier string) [16]byte {
	var space [512]byte
	text := append(append(append(space[:0], organization...), 0), identifier...)
	return sipHash(k.k0, k.k1, text)
}

// A Person is somebody whose records stay out.
type Person struct {
	Organization schema.OrganizationID
	Identifier   string // normalized
}

// Empty reports whether nobody is on the list.
func (l *List) Empty() bool { return l == nil || l.active == 0 }

// until is the last event clock at which a person's records stay out.
func (l *List) until(p Person) (last normalize.Instant, purged bool) {
	if l.Empty() {
		return 0, false
	}
	for _, k := range l.keys {
		if e, ok := l.entries[k.person(p.Organization, p.Identifier)]; ok && !e.lifted {
			last, purged = max(last, e.until), true
		}
	}
	return last, purged
}

// Until is the last event clock at which a person's records stay out.
func (l *List) Until(p Person) (last time.Time, purged bool) {
	ms, purged := l.until(p)
	return time.UnixMilli(ms).UTC(), purged
}

// Excludes reports whether an attribution record stays out. The error says why; it is a *normalize.Error.
func (l *List) Excludes(a *normalize.Attribution) error {
	until, purged := l.until(Person{a.OrganizationID, a.UserIdentifier})
	if !purged || a.OccurredAt > until {
		return nil
	}
	return &normalize.Error{Field: "user_identifier", Reason: "the person was purged on " +
		time.UnixMilli(until).UTC().Format(time.RFC3339) +
		"; what they did until then stays out until 'runlens purge --lift'"}
}

// Anonymizes reports whether a run is to be stored without its initiator.
func (l *List) Anonymizes(r *normalize.Run) bool {
	if r.InitiatorIdentifier == nil {
		return false
	}
	until, purged := l.until(Person{r.OrganizationID, *r.InitiatorIdentifier})
	return purged && r.CreatedAt <= until
}

// Anonymize takes the initiator out of a run if it stays out, as a purge does. It reports whether it did.
func (l *List) Anonymize(r *normalize.Run) bool {
	if !l.Anonymizes(r) {
		return false
	}
	r.InitiatorIdentifier, r.InitiatorName = nil, nil
	return true
}

// readVersion is another number after each change of the list.
var readVersion = sql.Select{
	Columns: []string{"sum(cityHash64(person, revision, until, lifted))"}, From: listed,
}

// listed is the list, which has hashes of people with their organizations.
var listed = sql.AllOrganizations("a writer has rows of any of them")(schema.TablePurgedPeople).Final(true)

// Read reads the list, unless it is still the one that was known before, nil for none.
func Read(ctx context.Context, conn driver.Conn, known *List) (*List, error) {
	l := &List{}
	if err := conn.QueryRow(ctx, readVersion.String()).Scan(&l.version); err != nil {
		return nil, fmt.Errorf("read the list of purged people: %w", err)
	}
	if known != nil && known.version == l.version {
		return known, nil
	}
	if l.version == 0 { // an empty list
		return l, nil
	}
	var err error
	if l.keys, err = readKeys(ctx, conn); err != nil {
		return nil, err
	}
	all := sql.Select{
		Columns: []string{"person", "revision", "toUnixTimestamp64Milli(until)", "lifted"}, From: listed,
	}
	rows, err := conn.Query(ctx, all.String())
	if err != nil {
		return nil, fmt.Errorf("read the list of purged people: %w", err)
	}
	defer rows.Close()
	l.entries = map[[16]byte]entry{}
	for rows.Next() {
		var person string
		var e entry
		if err := rows.Scan(&person, &e.revision, &e.until, &e.lifted); err != nil {
			return nil, fmt.Errorf("read the list of purged people: %w", err)
		}
		if !e.lifted {
			l.active++
		}
		l.entries[[16]byte([]byte(person))] = e
	}
	// A list that changed since its version was read is read again at the next occasion.
	return l, rows.Err()
}

// readKeys reads the keys of the hash, the one for new entries first.
func readKeys(ctx context.Context, conn driver.Conn) (keys []key, err error) {
	var stored []string
	read := sql.Select{Columns: []string{"stored_keys"}, From: sql.Query(schema.PurgedPeopleKeys)}
	if err := conn.QueryRow(ctx, read.String()).Scan(&stored); err != nil {
		return nil, fmt.Errorf("read the key of the list of purged people: %w", err)
	}
	for _, digits := range stored {
		b, err := hex.DecodeString(digits)
		if err != nil || len(b) != 16 {
			return nil, fmt.Errorf("a key of the list of purged people in the table %s is not 32 hexadecimal digits",
				schema.TableSecrets)
		}
		keys = append(keys, key{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])})
	}
	return keys, nil
}
