package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/runlens/runlens/ingest/normalize"
)

// describe returns the columns of a kind's SELECT.
func (d *Database) describe(ctx context.Context, tx pgx.Tx, kind normalize.Kind) ([]pgconn.FieldDescription, error) {
	rows, err := tx.Query(ctx, "SELECT * FROM "+d.from(kind)+" LIMIT 0")
	if err != nil {
		return nil, err
	}
	columns := slices.Clone(rows.FieldDescriptions())
	rows.Close()
	return columns, rows.Err()
}

func checkColumns(kind normalize.Kind, columns []pgconn.FieldDescription) error {
	names := make([]string, len(columns))
	for i, column := range columns {
		names[i] = column.Name
	}
	wanted := normalize.Fields(kind)
	if !slices.Contains(wanted, "updated_at") {
		wanted = append(slices.Clone(wanted), "updated_at")
	}
	for _, name := range wanted {
		if !slices.Contains(names, name) {
			return fmt.Errorf("the SELECT of record %s lacks the column %s", kind, name)
		}
	}
	for _, name := range names {
		if !slices.Contains(wanted, name) {
			return fmt.Errorf("the SELECT of record %s has the column %s, which is no field of it", kind, name)
		}
	}
	return nil
}

// A column is what of a column decides how its values are taken.
type column struct {
	name string
	oid  uint32 // of its type
}

func typesOf(fields []pgconn.FieldDescription) []column {
	columns := make([]column, len(fields))
	for i, field := range fields {
		columns[i] = column{field.Name, field.DataTypeOID}
	}
	return columns
}

// errChanged is returned where what a SELECT reads is not what Check judged. It has been judged again by then, so that
// the next try reads it.
var errChanged = errors.New("the types of the mapping's columns, or policies, changed while they were read")

// unchanged returns errChanged where the columns of a kind have not the types that Check judged. A source may change
// while a worker runs: a time that has no zone any more would be taken for UTC. What tx reads from then on it reads
// with these types, because it locks the tables.
func (d *Database) unchanged(ctx context.Context, tx pgx.Tx, kind normalize.Kind) error {
	d.mu.Lock()
	judged := d.columns[kind]
	d.mu.Unlock()
	if judged == nil {
		return nil
	}
	now, err := d.describe(ctx, tx, kind)
	if err == nil && !slices.Equal(judged, typesOf(now)) {
		err = errChanged
	}
	return err
}
