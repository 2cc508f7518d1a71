package source

import (
	"fmt"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"

	"github.com/runlens/runlens/ingest/normalize"
)

// A columnError says why a valid Parquet file has no records of its kind.
type columnError string

func (e columnError) Error() string { return string(e) }

func unfit(format string, args ...any) error { return columnError(fmt.Sprintf(format, args...)) }

// columnsOf finds the columns of the fields of the file's kind. All fields that may not be null must be there.
func columnsOf(f *File, file *format.FileMetaData) ([]column, error) {
	kind, fields := f.Kind, normalize.Fields(f.Kind)
	var columns []column
	leaf, schema := 0, file.Schema[1:] // the first element is the table
	for len(schema) > 0 {
		element, elements, leaves := &schema[0], sizeOf(schema), 0
		for i := range elements {
			if schema[i].Type.Valid {
				leaves++
			}
		}
		c := column{name: element.Name, leaf: leaf, field: recordColumn,
			optional: element.RepetitionType.V == format.Optional, width: widthOf(element)}
		schema, leaf = schema[elements:], leaf+leaves
		if c.name != "record" {
			if c.field = slices.Index(fields, c.name); c.field < 0 {
				if f.IgnoreUnknown {
					continue
				}
				return nil, unfit("the column %q is no field of a record of kind %s; --ignore-unknown leaves it out", c.name, kind)
			}
		}
		if slices.ContainsFunc(columns, func(other column) bool { return other.name == c.name }) {
			return nil, unfit("the column %q is there twice", c.name)
		}
		if !element.Type.Valid || element.RepetitionType.V == format.Repeated {
			return nil, unfit("the column %q is nested or repeated; it must hold %s", c.name, wanted(c.name))
		}
		var ok bool
		if c.form, ok = formOf(element); !ok || !admits(c.name, c.form) {
			if !holdsNulls(element, file.RowGroups, c.leaf) || !normalize.Nullable(c.name) && hasRows(file.RowGroups) {
				return nil, unfit("the column %q holds %s; it must hold %s", c.name, describe(element), wanted(c.name))
			}
			c.form = nulls
		}
		columns = append(columns, c)
	}
	for i := range file.RowGroups {
		if n := len(file.RowGroups[i].Columns); n != leaf {
			return nil, fmt.Errorf("row group %d has %d columns, not %d: %w", i+1, n, leaf, parquet.ErrCorrupted)
		}
	}
	for i, field := range fields {
		if !normalize.Nullable(field) && !slices.ContainsFunc(columns, func(c column) bool { return c.field == i }) {
			return nil, unfit("the column %q is missing, which a record of kind %s needs", field, kind)
		}
	}
	return columns, nil
}

// widthOf is how many bytes PLAIN has of a value; 0 for a text.
func widthOf(e *format.SchemaElement) int {
	switch e.Type.V {
	case format.FixedLenByteArray:
		return int(e.TypeLength.V)
	case format.Int64:
		return 8
	case format.Int96:
		return 12
	default:
		return 0
	}
}

// sizeOf is how many elements the first one and those in it are.
func sizeOf(schema []format.SchemaElement) int {
	size := 1
	for range schema[0].NumChildren.V {
		if size == len(schema) {
			break
		}
		size += sizeOf(schema[size:])
	}
	return size
}

// holdsNulls reports whether the file says that a column has nothing but nulls, or nothing at all. Writers that do not
// know the type of such a column take any.
func holdsNulls(e *format.SchemaElement, groups []format.RowGroup, leaf int) bool {
	if _, ok := e.LogicalType.Value.(*format.NullType); ok {
		return true
	}
	for i := range groups {
		if leaf >= len(groups[i].Columns) {
			return false
		}
		chunk := &groups[i].Columns[leaf].MetaData
		if chunk.Statistics.NullCount != chunk.NumValues || chunk.NumValues != groups[i].NumRows {
			return false
		}
	}
	return true
}

func hasRows(groups []format.RowGroup) bool {
	return slices.ContainsFunc(groups, func(g format.RowGroup) bool { return g.NumRows > 0 })
}

func isID(field string) bool   { return strings.HasSuffix(field, "_id") && field != "organization_id" }
func isTime(field string) bool { return strings.HasSuffix(field, "_at") }

func admits(field string, f form) bool {
	return f == texts || f == uuids && isID(field) || f >= millis && f <= int96s && isTime(field)
}

func wanted(field string) string {
	switch {
	case isID(field):
		return "text (BYTE_ARRAY) or UUIDs (FIXED_LEN_BYTE_ARRAY of 16 bytes)"
	case isTime(field):
		return "text (BYTE_ARRAY) or instants (INT96, or TIMESTAMP that is adjusted to UTC; " +
			"with any other the time zone would be a guess)"
	default:
		return "text (BYTE_ARRAY)"
	}
}

// formOf finds the form of a column by its physical and its logical type. The latter may be written
// in the older way, as a converted type.
func formOf(e *format.SchemaElement) (form, bool) {
	converted := e.ConvertedType
	plain := e.LogicalType.Value == nil && !converted.Valid
	switch e.Type.V {
	case format.ByteArray:
		switch e.LogicalType.Value.(type) {
		case *format.StringType, *format.EnumType:
			return texts, true
		case nil:
			return texts, plain || converted.V == deprecated.UTF8 || converted.V == deprecated.Enum
		}
	case format.FixedLenByteArray:
		_, isUUID := e.LogicalType.Value.(*format.UUIDType)
		return uuids, e.TypeLength.V == 16 && (plain || isUUID)
	case format.Int96:
		return int96s, plain
	case format.Int64:
		switch logical := e.LogicalType.Value.(type) {
		case *format.TimestampType:
			return timestampForm(logical)
		case nil:
			switch {
			case converted.Valid && converted.V == deprecated.TimestampMillis:
				return millis, true
			case converted.Valid && converted.V == deprecated.TimestampMicros:
				return micros, true
			}
		}
	}
	return 0, false
}

func timestampForm(t *format.TimestampType) (form, bool) {
	switch t.Unit.Value.(type) {
	case *format.MilliSeconds:
		return millis, t.IsAdjustedToUTC
	case *format.MicroSeconds:
		return micros, t.IsAdjustedToUTC
	case *format.NanoSeconds:
		return nanos, t.IsAdjustedToUTC
	default:
		return 0, false
	}
}

// describe names the type of a column as the tools that show Parquet files do.
func describe(e *format.SchemaElement) string {
	name := e.Type.V.String()
	if e.Type.V == format.FixedLenByteArray {
		name += fmt.Sprintf("(%d)", e.TypeLength.V)
	}
	switch {
	case e.LogicalType.Value != nil:
		name += " " + e.LogicalType.String()
	case e.ConvertedType.Valid:
		name += fmt.Sprintf(" of converted type %d", e.ConvertedType.V)
	}
	return name
}
