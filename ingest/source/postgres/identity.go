package postgres

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/source"
	"github.com/runlens/runlens/schema"
)

// identityTypes are the types of what identifies the rows of a kind.
type identityTypes struct {
	idIsUUID     bool
	organization organizationType
}

// An organizationType says how a column is compared with an organization, which may be any text: that of another source
// of the store too.
type organizationType int

const (
	otherType organizationType = iota // of which a text may be no value, such as an enum
	textType
	uuidType
)

// identityOf reads which types identify the rows of a kind.
func identityOf(ctx context.Context, tx pgx.Tx, kind normalize.Kind, columns []pgconn.FieldDescription) (
	types identityTypes, err error) {
	for _, column := range columns {
		switch column.Name {
		case idColumn(kind):
			types.idIsUUID = column.DataTypeOID == pgtype.UUIDOID
		case "organization_id":
			types.organization, err = organizationTypeOf(ctx, tx, column.DataTypeOID)
		}
	}
	return types, err
}

func organizationTypeOf(ctx context.Context, tx pgx.Tx, oid uint32) (organizationType, error) {
	if oid == pgtype.UUIDOID {
		return uuidType, nil
	}
	var isText bool
	err := tx.QueryRow(ctx, "SELECT typcategory = 'S' FROM pg_type WHERE oid = $1", oid).Scan(&isText)
	if err != nil {
		return otherType, fmt.Errorf("read the type of organization_id: %w", err)
	}
	if isText {
		return textType, nil
	}
	return otherType, nil
}

// identity returns what Check found, or types that may be any.
func (d *Database) identity(kind normalize.Kind) identityTypes {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.identities[kind]
}

// eachOf calls visit with the records of one organization for which a condition holds. The organization is its $1, and
// args follow. An index on organization_id serves where the type allows it.
func (d *Database) eachOf(ctx context.Context, kind normalize.Kind, organization schema.OrganizationID,
	condition string, args []any, visit func(*source.Record) error) error {
	where := "s.organization_id = $1"
	switch d.identity(kind).organization {
	case otherType:
		where = "s.organization_id::text = $1"
	case uuidType:
		// PostgreSQL writes each UUID in one way. A text that is another one is another organization.
		if id, err := uuid.Parse(string(organization)); err != nil || id.String() != string(organization) {
			return nil
		}
	}
	return d.each(ctx, kind, where+" AND "+condition, append([]any{string(organization)}, args...),
		func(r *source.Record) error {
			// To citext and to some collations other texts are equal.
			if schema.OrganizationID(r.Raw.Values[0]) != organization {
				return nil
			}
			return visit(r)
		})
}
