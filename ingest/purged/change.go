package purged

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
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
	k, err := readKey(ctx, conn)
	if err != nil {
		return err
	}
	if k == (key{}) {
		var made [16]byte
		rand.Read(made[:])
		err := insert(ctx, conn, "INSERT INTO "+schema.TableSecrets+" (name, value)", schema.SecretPurgedPeople,
			hex.EncodeToString(made[:]))
		if err != nil {
			return err
		}
		if k, err = readKey(ctx, conn); err != nil {
			return err
		}
	}
	return change(ctx, conn, k, p, func(e entry, _ bool) (entry, error) {
		e.until, e.lifted = max(e.until, until.UnixMilli()), false
		return e, nil
	})
}

// Lift takes a person off the list: records that are stored from then on count, whenever they happened. The error is
// ErrNotPurged for somebody who is not on it.
func Lift(ctx context.Context, conn driver.Conn, p Person) error {
	k, err := readKey(ctx, conn)
	if err != nil {
		return err
	}
	return change(ctx, conn, k, p, func(e entry, found bool) (entry, error) {
		if !found || e.lifted {
			return e, ErrNotPurged
		}
		e.lifted = true
		return e, nil
	})
}

// change stores another revision of a person's entry.
func change(ctx context.Context, conn driver.Conn, k key, p Person, to func(entry, bool) (entry, error)) error {
	known, err := Read(ctx, conn, nil)
	if err != nil {
		return err
	}
	p.Identifier = schema.NormalizeIdentifier(p.Identifier)
	person := k.person(p.Organization, p.Identifier)
	before, found := known.entries[person]
	e, err := to(before, found)
	if err != nil {
		return err
	}
	return insert(ctx, conn, "INSERT INTO "+schema.TablePurgedPeople+" (person, revision, until, lifted)",
		string(person[:]), before.revision+1, time.UnixMilli(e.until).UTC(), e.lifted)
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
