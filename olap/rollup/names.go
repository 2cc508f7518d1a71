package rollup

import (
	"context"

	"github.com/runlens/runlens/schema"
	"github.com/runlens/runlens/schema/sql"
)

// textColumns are those of the table initiator_keys.
var textColumns = []string{"organization_id", "initiator_key", "initiator_identifier", "initiator_name"}

// name stores the texts of the initiator keys of the rows of runs that satisfy a condition, and which keys are shared.
// Texts of rows that are not refreshed in the end do no harm. Without the claim it writes nothing: a purge may have
// deleted the initiator keys of a person whose runs it has not changed yet.
func (c *claim) name(ctx context.Context, condition string, args ...any) error {
	texts := schema.InitiatorKeys(refreshed, condition)
	if err := c.add(inserting(ctx, nil), schema.TableInitiatorKeys, textColumns, texts, args...); err != nil {
		return err
	}
	return c.markShared(ctx, texts, args...)
}

// markShared stores which initiator keys of some texts (schema.SharedKeys) represent two. For rows that are about to be
// refreshed it follows their names and precedes the rows, so that a query finds a shared key in the marks or in the
// delta. Marks of rows that are not refreshed in the end cost time, and change no answer.
func (c *claim) markShared(ctx context.Context, texts sql.Select, args ...any) error {
	columns := []string{"organization_id", "initiator"}
	marks := sql.Select{Columns: columns, From: sql.Query(schema.SharedKeys(refreshed, sql.Query(texts)))}
	return c.add(inserting(ctx, nil), schema.TableSharedKeys, columns, marks, args...)
}

// ofSharedKeys selects initiator keys that represent two texts and are not marked.
func (s section) ofSharedKeys() sql.Select {
	marks := sql.Select{
		Columns: []string{"organization_id", "initiator"}, From: compared(schema.TableSharedKeys),
		Where: []string{ofOrganizations},
	}
	return sql.Select{
		Columns: selected(schema.TableSharedKeys, "count()", "0", "0", "0"),
		From:    sql.Query(schema.SharedKeys(compared, sql.Query(s.texts()))),
		Where:   []string{"(organization_id, initiator) NOT IN" + sql.In(marks)}, Group: []string{"organization_id"},
	}
}

// texts are those of the initiator keys of the section's organizations.
func (s section) texts() sql.Select {
	return sql.Select{
		Columns: textColumns, From: compared(schema.TableInitiatorKeys), Where: []string{ofOrganizations},
	}
}
