package output

import (
	"fmt"
	"io"
	"reflect"
	"regexp"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/runlens/runlens/http/client"
	"github.com/runlens/runlens/http/client/report"
)

// groupBytes of values are a row group, which is held in memory until it is written.
const groupBytes = 2 << 20

// A parquetFile has one nullable column for each of the table: BYTE_ARRAY (string), INT32 (date), INT64 (count) or
// DOUBLE. The key-value metadata says what the rows are.
type parquetFile struct {
	out     io.Writer
	w       *parquet.GenericWriter[any]
	columns []report.Column
	group   int // bytes of values in the group
	row     parquet.Row
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9_.]+$`)

func (p *parquetFile) Head(columns []report.Column) error {
	p.columns = columns
	// A struct keeps the order of its fields; a parquet.Group would sort them.
	fields := make([]reflect.StructField, len(columns))
	for i, c := range columns {
		if !plainName.MatchString(c.Name) { // the library reads names from tags of Go, without escapes
			return fmt.Errorf("a column of a Parquet file cannot be named %q", c.Name)
		}
		kind, logical := reflect.TypeFor[*string](), ""
		switch c.Kind {
		case report.Date:
			kind, logical = reflect.TypeFor[*int32](), ",date"
		case report.Count:
			kind = reflect.TypeFor[*int64]()
		case report.Number, report.Percent:
			kind = reflect.TypeFor[*float64]()
		}
		tag := `parquet:"` + c.Name + `,optional` + logical + `"`
		fields[i] = reflect.StructField{Name: fmt.Sprintf("F%d", i), Type: kind, Tag: reflect.StructTag(tag)}
	}
	schema := parquet.SchemaOf(reflect.New(reflect.StructOf(fields)).Interface())
	p.w = parquet.NewGenericWriter[any](p.out, schema, parquet.Compression(&parquet.Snappy))
	return nil
}

func (p *parquetFile) Row(row report.Row) error {
	p.row = p.row[:0]
	for i, v := range row {
		value, err := parquetValue(p.columns[i], v)
		if err != nil {
			return err
		}
		defined := 1
		if value.IsNull() {
			defined = 0
		}
		p.row = append(p.row, value.Level(0, defined, i))
		p.group += 8 + len(v.String())
	}
	if _, err := p.w.WriteRows([]parquet.Row{p.row}); err != nil {
		return err
	}
	if p.group < groupBytes {
		return nil
	}
	p.group = 0
	return p.w.Flush()
}

func parquetValue(c report.Column, v client.Value) (parquet.Value, error) {
	if v.IsNull() {
		return parquet.NullValue(), nil
	}
	switch c.Kind {
	case report.Date:
		if day, err := time.Parse(time.DateOnly, v.String()); err == nil {
			return parquet.Int32Value(int32(day.Unix() / (24 * 60 * 60))), nil
		}
	case report.Count:
		if n, ok := v.Int64(); ok {
			return parquet.Int64Value(n), nil
		}
	case report.Number, report.Percent:
		if f, ok := v.Float64(); ok {
			return parquet.DoubleValue(f), nil
		}
	default:
		return parquet.ByteArrayValue([]byte(v.String())), nil
	}
	return parquet.NullValue(), fmt.Errorf("%s %s does not fit its Parquet column; write another format", c.Name, v)
}

func (p *parquetFile) End(f report.Facts) error {
	for key, value := range map[string]string{
		"runlens.query_id": f.QueryID, "runlens.catalog_version": f.CatalogVersion,
		"runlens.as_of": instant(f.AsOf),
		"runlens.start": f.Range.Start, "runlens.end": f.Range.End, "runlens.timezone": f.Range.Timezone,
	} {
		p.w.SetKeyValueMetadata(key, value)
	}
	return p.w.Close()
}
