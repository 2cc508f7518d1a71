package source

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"

	"github.com/runlens/runlens/ingest/normalize"
)

// chunkValues is how many values of a column are decoded at a time.
const chunkValues = 1024

// A column is one column of a Parquet file, of which at most two pages are in memory.
type column struct {
	name  string
	leaf  int // position in the file
	field int // position in Raw.Values, or recordColumn
	form  form

	pages  parquet.Pages
	page   parquet.Page
	in     parquet.ValueReader
	left   int64 // values of page that in has not returned
	values []parquet.Value
	unread []parquet.Value // of values
	text   []byte
}

// A form is how a column writes its values.
type form int

const (
	texts form = iota
	uuids
	millis
	micros
	nanos
)

// fill reads values into unread. The texts of all values before may change.
func (c *column) fill() (err error) {
	defer invalid(&err)
	for c.left == 0 {
		parquet.Release(c.page)
		c.page = nil
		page, err := c.pages.ReadPage()
		if err != nil {
			return c.ended(err)
		}
		c.page, c.in, c.left = page, page.Values(), page.NumValues()
	}
	n, err := c.in.ReadValues(c.values[:min(c.left, chunkValues)])
	if n == 0 {
		return c.ended(err)
	}
	c.left -= int64(n)
	c.unread = c.values[:n]
	return nil
}

// ended names the column that ends before its row group does.
func (c *column) ended(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("the column %q: %w", c.name, err)
}

// next returns the next value as Raw.Values holds it, nil of null. It is valid until the next call.
func (c *column) next() []byte {
	value := &c.unread[0]
	c.unread = c.unread[1:]
	switch {
	case value.IsNull():
		return nil
	case c.form == texts:
		if text := value.ByteArray(); text != nil {
			return text
		}
		return []byte{}
	case c.form == uuids:
		return value.ByteArray()
	default:
		c.text = binary.LittleEndian.AppendUint64(c.text[:0], uint64(c.form.instant(value.Int64())))
		return c.text
	}
}

// instant is a timestamp in milliseconds, what is finer cut off.
func (f form) instant(n int64) normalize.Instant {
	switch f {
	case millis:
		return n
	case micros:
		return time.UnixMicro(n).UnixMilli()
	default:
		return time.Unix(0, n).UnixMilli()
	}
}

// close gives back the pages; the column can be used for the next row group.
func (c *column) close() {
	parquet.Release(c.page)
	if c.pages != nil {
		c.pages.Close()
	}
	c.pages, c.page, c.in, c.left, c.unread = nil, nil, nil, 0, nil
}

// A columnError says why a valid Parquet file holds no records of its kind.
type columnError string

func (e columnError) Error() string { return string(e) }

func unfit(format string, args ...any) error { return columnError(fmt.Sprintf(format, args...)) }

// columnsOf finds the columns of the fields of a kind. All fields that may not be null must be there.
func columnsOf(kind normalize.Kind, schema []format.SchemaElement) ([]column, error) {
	fields := normalize.Fields(kind)
	var columns []column
	// The first element is the table. The columns follow in order as long as none holds others.
	for i := range schema[1:] {
		element := &schema[i+1]
		c := column{name: element.Name, leaf: i, field: recordColumn, values: make([]parquet.Value, chunkValues)}
		if c.name != "record" {
			if c.field = slices.Index(fields, c.name); c.field < 0 {
				return nil, unfit("the column %q is no field of a record of kind %s", c.name, kind)
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
			return nil, unfit("the column %q holds %s; it must hold %s", c.name, describe(element), wanted(c.name))
		}
		columns = append(columns, c)
	}
	for i, field := range fields {
		if !normalize.Nullable(field) && !slices.ContainsFunc(columns, func(c column) bool { return c.field == i }) {
			return nil, unfit("the column %q is missing, which a record of kind %s needs", field, kind)
		}
	}
	return columns, nil
}

func isID(field string) bool   { return strings.HasSuffix(field, "_id") && field != "organization_id" }
func isTime(field string) bool { return strings.HasSuffix(field, "_at") }

func admits(field string, f form) bool {
	return f == texts || f == uuids && isID(field) || f >= millis && isTime(field)
}

func wanted(field string) string {
	switch {
	case isID(field):
		return "text (BYTE_ARRAY) or UUIDs (FIXED_LEN_BYTE_ARRAY of 16 bytes)"
	case isTime(field):
		return "text (BYTE_ARRAY) or instants (TIMESTAMP that is adjusted to UTC; with any other the time zone would be a guess)"
	default:
		return "text (BYTE_ARRAY)"
	}
}

// formOf tells the form of a column by its physical and its logical type. The latter may be written
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
