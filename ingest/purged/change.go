package purged

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/schema"
)

// ErrNotPurged is the error of Lift for somebody who is not on the list.
var ErrNotPurged = errors.New("nobody with this identifier is on the list of purged people of the organization")

// Add puts a person on the list: what they do until an instant, inclusive, stays out. It makes the key of the list if
// there is none. Only who has the claim of a change may call it, so that one process at a time does.
func Add(ctx context.Context, conn driver.Conn, p Person, until time.Time) error {
	keys, err := readKeys(ctx, conn)
	if err != nil {
		return err
	}
	if len(keys) == 0 {
		var made [16]byte
		rand.Read(made[:])
		err := insert(ctx, conn, "INSERT INTO "+schema.TableSecrets+" (name, value)", schema.SecretPurgedPeople,
			hex.EncodeToString(made[:]))
		if err != nil {
			return err
		}
		if keys, err = readKeys(ctx, conn); err != nil {
			return err
		}
	}
	known, err := Read(ctx, conn, nil)
	if err != nil {
		return err
	}
	person := known.find(keys, p)[0]
	e := known.entries[person]
	e.until, e.lifted = max(e.until, until.UnixMilli()), false
	return revise(ctx, conn, person, e)
}

// Lift takes a person off the list: records that are stored from then on count, whenever they happened. The error is
// ErrNotPurged for somebody who is not on it.
func Lift(ctx context.Context, conn driver.Conn, p Person) error {
	known, err := Read(ctx, conn, nil)
	if err != nil {
		return err
	}
	lifted := false
	for _, person := range known.find(known.keys, p) {
		if e, found := known.entries[person]; found && !e.lifted {
			e.lifted = true
			if err := revise(ctx, conn, person, e); err != nil {
				return err
			}
			lifted = true
		}
	}
	if !lifted {
		return ErrNotPurged
	}
	return nil
}

// find are the hashes of a person under some keys, those with entries first.
func (l *List) find(keys []key, p Person) (people [][16]byte) {
	p.Identifier = schema.NormalizeIdentifier(p.Identifier)
	for _, k := range keys {
		people = append(people, k.person(p.Organization, p.Identifier))
	}
	slices.SortStableFunc(people, func(a, b [16]byte) int {
		_, first := l.entries[a]
		_, second := l.entries[b]
		switch {
		case first == second:
			return 0
		case first:
			return -1
		}
		return 1
	})
	return people
}

// revise stores another revision of an entry. Its number is not less than until in Unix milliseconds: a process that
// was stopped between reading the list and this may have lost its claim meanwhile, and what it stores then must not
// replace the entry of a later purge.
func revise(ctx context.Context, conn driver.Conn, person [16]byte, e entry) error {
	return insert(ctx, conn, "INSERT INTO "+schema.TablePurgedPeople+" (person, revision, until, lifted)",
		string(person[:]), max(e.revision+1, uint64(max(e.until, 0))), time.UnixMilli(e.until).UTC(), e.lifted)
}

// insert stores a row, as data and not in a statement's text.
func insert(ctx context.Context, conn driver.Conn, statement string, values ...any) error {
	ctx = clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{
		"async_insert": 0, "insert_deduplication_token": rand.Text()}))
	batch, err := conn.PrepareBatch(ctx, statement)
	if err == nil {
		err = batch.Append(values...)
	}
	if err == nil {
		err = batch.Send()
	}
	if err != nil {
		return fmt.Errorf("change the list of purged people: %w", err)
	}
	return nil
}
