package olap

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/runlens/runlens/schema"
	"github.com/runlens/runlens/schema/sql"
)

// The secrets that the store keeps for cursors (contract 2, RUNLENS_CURSOR_SECRET) are numbered from 1, each under a
// name of its own. Servers that run read them again from time to time, so that none has to be restarted:
//
//  1. Of several rows of one number, made by servers or commands at the same time, the one stored first counts.
//  2. A new secret is accepted by whoever has read it, but signs only when it is CursorSecretDelay old. By then every
//     server that reads the store within that time accepts it.
//  3. The newest secret of that age signs; before there is one, the oldest. The one before it is accepted until the
//     next rotation.
//  4. Secrets of another store, from which organizations came or where they went, are accepted as long as the secret
//     that was made last before they were kept: they end with the second rotation from then on. They never sign.
const (
	cursorSecretName   = "cursor"
	acceptedSecretName = "cursor of another cell"
)

// CursorSecretDelay is the age from which on a new secret signs, inclusive, by the store's clock. Servers read the
// secrets several times within it.
const CursorSecretDelay = 5 * time.Minute

// A PendingSecretError is returned when the newest secret does not sign yet.
type PendingSecretError struct{ SignsFrom time.Time }

func (e *PendingSecretError) Error() string {
	return fmt.Sprintf("the last rotation takes effect at %s; another one before it would cut off cursors in use",
		e.SignsFrom.UTC().Format(time.RFC3339))
}

// CursorSecrets returns the secrets that the store keeps for cursors, the one that signs first. It makes one if there
// is none.
func CursorSecrets(ctx context.Context, conn driver.Conn) ([][]byte, error) {
	kept, err := readSecrets(ctx, conn)
	if err == nil && len(kept) == 0 {
		if err = addSecret(ctx, conn, 1); err == nil {
			kept, err = readSecrets(ctx, conn)
		}
	}
	if err != nil {
		return nil, err
	}
	if len(kept) == 0 {
		return nil, errors.New("olap: the cursor secret that was just kept is not there")
	}
	signing := signingOf(kept)
	secrets := [][]byte{[]byte(kept[signing].Value)}
	oldest := max(signing-1, 0)
	for i := oldest; i < len(kept); i++ {
		if i != signing {
			secrets = append(secrets, []byte(kept[i].Value))
		}
	}
	accepted, err := readAccepted(ctx, conn, kept[oldest].SignsFrom.Add(-CursorSecretDelay))
	return append(secrets, accepted...), err
}

// AcceptCursorSecrets has a store accept what another one accepts (4). Calling it again changes nothing.
func AcceptCursorSecrets(ctx context.Context, from, to driver.Conn) error {
	theirs, err := CursorSecrets(ctx, from)
	if err != nil {
		return err
	}
	ours, err := CursorSecrets(ctx, to)
	if err != nil {
		return err
	}
	for _, secret := range theirs {
		known := func(own []byte) bool { return bytes.Equal(own, secret) }
		if slices.ContainsFunc(ours, known) {
			continue
		}
		if err := keepSecret(ctx, to, acceptedSecretName, string(secret)); err != nil {
			return err
		}
	}
	return nil
}

// readAccepted reads the secrets of rule 4 that were kept at an instant or later.
func readAccepted(ctx context.Context, conn driver.Conn, since time.Time) (secrets [][]byte, err error) {
	var values []string
	list := sql.Select{
		Columns: []string{"arraySort(groupUniqArray(value))"},
		From:    sql.AllOrganizations("secrets are the deployment's")(schema.TableSecrets),
		Where:   []string{"name = {name:String}", "created_at >= fromUnixTimestamp64Nano({since:Int64}, 'UTC')"},
	}
	err = conn.QueryRow(ctx, list.String(), clickhouse.Named("name", acceptedSecretName),
		clickhouse.Named("since", since.UnixNano())).Scan(&values)
	if err != nil {
		return nil, fmt.Errorf("olap: read the cursor secrets: %w", err)
	}
	for _, value := range values {
		secrets = append(secrets, []byte(value))
	}
	return secrets, nil
}

// RotateCursorSecret makes a secret that replaces the one that signs, and returns from when on it does. The error is
// a *PendingSecretError while an earlier rotation has not taken effect.
func RotateCursorSecret(ctx context.Context, conn driver.Conn) (signsFrom time.Time, err error) {
	if _, err := CursorSecrets(ctx, conn); err != nil { // the first one, if there is none
		return time.Time{}, err
	}
	kept, err := readSecrets(ctx, conn)
	if err != nil {
		return time.Time{}, err
	}
	newest := kept[len(kept)-1]
	if signingOf(kept) != len(kept)-1 {
		return time.Time{}, &PendingSecretError{newest.SignsFrom}
	}
	if err := addSecret(ctx, conn, newest.number+1); err != nil {
		return time.Time{}, err
	}
	if kept, err = readSecrets(ctx, conn); err != nil {
		return time.Time{}, err
	}
	return kept[len(kept)-1].SignsFrom, nil
}

// A keptSecret is a row of rule 1.
type keptSecret struct {
	Name      string    `ch:"name"`
	Value     string    `ch:"kept"`
	SignsFrom time.Time `ch:"signs_from"`
	Signs     bool      `ch:"signs"`
	number    int
}

// signingOf is the index of the secret that signs.
func signingOf(kept []keptSecret) int {
	for i := len(kept) - 1; i > 0; i-- {
		if kept[i].Signs {
			return i
		}
	}
	return 0
}

func addSecret(ctx context.Context, conn driver.Conn, number int) error {
	name := cursorSecretName
	if number > 1 {
		name += "/" + strconv.Itoa(number)
	}
	return keepSecret(ctx, conn, name, rand.Text()+rand.Text())
}

func keepSecret(ctx context.Context, conn driver.Conn, name, value string) error {
	insert := "INSERT INTO " + schema.TableSecrets + " (name, value) VALUES ($1, $2)"
	if err := conn.Exec(ctx, insert, name, value); err != nil {
		return fmt.Errorf("olap: keep a cursor secret: %w", err)
	}
	return nil
}

// readSecrets returns the secrets by their numbers, ascending.
func readSecrets(ctx context.Context, conn driver.Conn) ([]keptSecret, error) {
	list := sql.Select{
		Columns: []string{"name", "argMin(value, (created_at, value)) AS kept",
			"min(created_at) + toIntervalSecond({delay:Int64}) AS signs_from", "signs_from <= now64(9, 'UTC') AS signs"},
		From:  sql.AllOrganizations("secrets are the deployment's")(schema.TableSecrets),
		Where: []string{"(name = {name:String} OR startsWith(name, {name:String} || '/'))"}, Group: []string{"name"},
		Order: []string{"length(name)", "name"},
	}
	var kept []keptSecret
	err := conn.Select(ctx, &kept, list.String(),
		clickhouse.Named("name", cursorSecretName), clickhouse.Named("delay", int64(CursorSecretDelay/time.Second)))
	if err != nil {
		return nil, fmt.Errorf("olap: read the cursor secrets: %w", err)
	}
	for i := range kept {
		kept[i].number = 1
		if number, numbered := strings.CutPrefix(kept[i].Name, cursorSecretName+"/"); numbered {
			if kept[i].number, err = strconv.Atoi(number); err != nil {
				return nil, fmt.Errorf("olap: the cursor secret %q has no number", kept[i].Name)
			}
		}
	}
	return kept, nil
}
