package rollup

import (
	"context"
	"fmt"
	"time"

	"github.com/runlens/runlens/schema"
)

// nameInitiatorKeys stores the texts of the initiator keys of the rows that are about to be refreshed, and marks shared
// keys. Texts of rows that are not refreshed in the end do no harm. Without the claim it writes nothing: a purge may
// have deleted the initiator keys of a person whose runs it has not changed yet.
func (c *claim) nameInitiatorKeys(ctx context.Context, from, until time.Time) error {
	return c.name(ctx, within(schema.RollupOf(schema.TableRuns).StoredAt), span(from, until)...)
}

// name stores the texts of the initiator keys of the rows of runs that satisfy a condition, and which keys are shared.
func (c *claim) name(ctx context.Context, condition string, args ...any) error {
	err := c.conn.Exec(inserting(ctx, nil), "INSERT INTO "+schema.TableInitiatorKeys+
		" (organization_id, initiator_key, initiator_identifier, initiator_name) "+
		schema.InitiatorKeys(condition+" AND "+c.fence), args...)
	if err != nil {
		return fmt.Errorf("rollup: name initiator keys: %w", err)
	}
	return c.markShared(ctx, schema.InitiatorKeys(condition), args...)
}

// markShared stores which initiator keys of some texts (schema.SharedKeys) represent two. For rows that are about to be
// refreshed it follows their names and precedes the rows, so that a query finds a shared key in the marks or in the
// delta. Marks of rows that are not refreshed in the end cost time, and change no answer.
func (c *claim) markShared(ctx context.Context, texts string, args ...any) error {
	err := c.conn.Exec(inserting(ctx, nil), "INSERT INTO "+schema.TableSharedKeys+" (organization_id, initiator) "+
		"SELECT organization_id, initiator FROM ("+schema.SharedKeys(texts, "true")+") WHERE "+c.fence, args...)
	if err != nil {
		return fmt.Errorf("rollup: mark shared initiator keys: %w", err)
	}
	return nil
}

// ofSharedKeys selects initiator keys that represent two texts and are not marked.
func (s section) ofSharedKeys() string {
	return selected(schema.TableSharedKeys, "count()", "0", "0", "0") + "(\n" + schema.SharedKeys(s.texts(), "true") +
		"\n)" +
		"\nWHERE (organization_id, initiator) NOT IN (SELECT organization_id, initiator FROM " + schema.TableSharedKeys +
		" WHERE " + ofOrganizations + ")\nGROUP BY organization_id"
}

// texts is SQL of the texts of the initiator keys of the section's organizations.
func (s section) texts() string {
	return "SELECT organization_id, initiator_key, initiator_identifier, initiator_name FROM " +
		schema.TableInitiatorKeys +
		" WHERE " + ofOrganizations
}
