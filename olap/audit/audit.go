// Package audit keeps who did what to keys and records: an append-only log in the store. Nothing in this program
// changes or deletes its rows.
//
// An entry is written before an action begins, and another one when it has ended. An action that cannot be recorded
// does not begin, so none is missing; one without a second entry was interrupted, or its end could not be recorded.
//
// Entries hold organizations, key ids and numbers: no secrets, and neither names nor identifiers of those whose records
// are purged. So a purge leaves them, also that of an organization: that it was purged has to be on record
// (schema/decisions/audit-log.md).
package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/user"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/runlens/runlens/schema"
	"github.com/runlens/runlens/schema/sql"
)

// The outcomes of an action.
const (
	Begun  = "begun"
	Done   = "done"
	Failed = "failed"
)

// An Entry is what the log says of an action at one instant.
type Entry struct {
	At             time.Time // by the store's clock
	ActionID       uuid.UUID // the same in the entries of one action
	Outcome        string    // Begun, Done or Failed
	Action         string    // the command, such as "keys revoke"
	OrganizationID schema.OrganizationID
	KeyID          string // empty where no key is concerned
	Actor          string // user@host of the operating system
	Details        string // a JSON object
}

// An Action is what is recorded. Details must hold neither secrets nor identifiers or names of people.
type Action struct {
	Name           string
	OrganizationID schema.OrganizationID // empty where none is concerned
	KeyID          string
	Details        map[string]any
}

// endTimeout bounds the second entry, which is written even if the action was cancelled.
const endTimeout = 10 * time.Second

// Do records an action, does it and records how it ended. It returns the error of do; do does not run if the
// log cannot be written.
func Do(ctx context.Context, conn driver.Conn, action Action, do func(context.Context) error) error {
	id := uuid.New()
	if err := write(ctx, conn, id, Begun, action); err != nil {
		return err
	}
	err := do(ctx)
	outcome := Done
	if err != nil {
		outcome = Failed
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	return errors.Join(err, write(ctx, conn, id, outcome, action))
}

func write(ctx context.Context, conn driver.Conn, id uuid.UUID, outcome string, action Action) error {
	details := []byte("{}")
	var err error
	if action.Details != nil {
		if details, err = json.Marshal(action.Details); err != nil {
			return fmt.Errorf("audit: %w", err)
		}
	}
	batch, err := conn.PrepareBatch(ctx, "INSERT INTO "+schema.TableAuditLog+
		" (action_id, outcome, action, organization_id, key_id, actor, details)")
	if err == nil {
		err = batch.Append(id, outcome, action.Name, string(action.OrganizationID), action.KeyID, actor(), string(details))
	}
	if err == nil {
		err = batch.Send()
	}
	if err != nil {
		return fmt.Errorf("audit: record %s: %w", action.Name, err)
	}
	return nil
}

// actor is who runs this process, as far as the operating system reports it.
func actor() string {
	name := fmt.Sprintf("uid %d", os.Getuid()) // a container may have no list of users
	if u, err := user.Current(); err == nil && u.Username != "" {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return name + "@" + host
}

// List returns the entries of an organization, or all of them if it is empty, oldest first.
func List(ctx context.Context, conn driver.Conn, organization schema.OrganizationID) ([]Entry, error) {
	read := sql.Table
	if organization == "" {
		read = sql.AllOrganizations("the audit log of all of them is asked for")
	}
	list := sql.Select{
		Columns: []string{"at", "action_id", "toString(outcome)", "action", "organization_id", "key_id", "actor", "details"},
		From:    read(schema.TableAuditLog), Order: []string{"at", "action_id", "outcome"},
	}
	rows, err := conn.Query(ctx, list.String(), clickhouse.Named("organization", string(organization)))
	if err != nil {
		return nil, fmt.Errorf("audit: list: %w", err)
	}
	defer rows.Close()
	var entries []Entry
	for rows.Next() {
		var e Entry
		var organization string
		err := rows.Scan(&e.At, &e.ActionID, &e.Outcome, &e.Action, &organization, &e.KeyID, &e.Actor, &e.Details)
		if err != nil {
			return nil, fmt.Errorf("audit: list: %w", err)
		}
		e.OrganizationID = schema.OrganizationID(organization)
		entries = append(entries, e)
	}
	return entries, rows.Err()
}
