package source

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/runlens/runlens/ingest/normalize"
)

// A layout says how a test file is written.
type layout struct {
	id, instant, text parquet.Node
	dictionary        bool
	rows, perGroup    int
	options           []parquet.WriterOption
}

var (
	fixed16     = parquet.Leaf(parquet.FixedLenByteArrayType(16))
	bareText    = parquet.Leaf(parquet.ByteArrayType)
	smallPages  = parquet.PageBufferSize(96)
	smallLayout = layout{
		parquet.UUID(),
		parquet.Timestamp(parquet.Microsecond),
		parquet.String(),
		false,
		60,
		23,
		[]parquet.WriterOption{smallPages},
	}
)

// sample is what the test files have in a row; nil for null.
func sample(field string, row int) []byte {
	switch {
	case normalize.Nullable(field) && row%(2+len(field)%3) == 0:
		return nil
	case isID(field):
		return []byte(uuid.NewSHA1(uuid.NameSpaceOID, []byte(fmt.Sprint(field, row))).String())
	case isTime(field):
		return time.Unix(1769852096, 0).
			Add(time.Duration(row)*1001*time.Millisecond).
			UTC().
			AppendFormat(nil, time.RFC3339Nano)
	case row%7 == 5:
		return []byte{}
	default:
		return fmt.Appendf(nil, "%s %d", field, row%50)
	}
}

// nodes are the columns of a kind.
func (l layout) nodes(kind normalize.Kind) parquet.Group {
	nodes := parquet.Group{}
	for _, field := range normalize.Fields(kind) {
		node := l.text
		if isID(field) {
			node = l.id
		} else if isTime(field) {
			node = l.instant
		}
		if l.dictionary {
			node = parquet.Encoded(node, &parquet.RLEDictionary)
		}
		if normalize.Nullable(field) {
			node = parquet.Optional(node)
		}
		nodes[field] = node
	}
	return nodes
}

// write writes the rows as value gives them.
func (l layout) write(tb testing.TB, nodes parquet.Group, value func(field string, row int) []byte) []byte {
	tb.Helper()
	var file bytes.Buffer
	schema := parquet.NewSchema("records", nodes)
	w := parquet.NewWriter(&file, append([]parquet.WriterOption{schema}, l.options...)...)
	for row := range l.rows {
		var values parquet.Row
		for i, path := range schema.Columns() {
			leaf, _ := schema.Lookup(path...)
			v, level := parquetValue(tb, leaf.Node.Type(), value(path[0], row)), 0
			if !v.IsNull() {
				level = leaf.MaxDefinitionLevel
			}
			values = append(values, v.Level(0, level, i))
		}
		if _, err := w.WriteRows([]parquet.Row{values}); err != nil {
			tb.Fatal(err)
		}
		if (row+1)%l.perGroup == 0 {
			if err := w.Flush(); err != nil {
				tb.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return file.Bytes()
}

func parquetValue(tb testing.TB, typ parquet.Type, text []byte) parquet.Value {
	tb.Helper()
	switch {
	case text == nil:
		return parquet.NullValue()
	case typ.Kind() == parquet.FixedLenByteArray:
		id := uuid.MustParse(string(text))
		return parquet.FixedLenByteArrayValue(id[:])
	case typ.Kind() == parquet.Double:
		return parquet.DoubleValue(7)
	case typ.Kind() == parquet.Int64:
		t, err := time.Parse(time.RFC3339Nano, string(text))
		if err != nil {
			tb.Fatal(err)
		}
		switch typ.LogicalType().Value.(*format.TimestampType).Unit.Value.(type) {
		case *format.MilliSeconds:
			return parquet.Int64Value(t.UnixMilli())
		case *format.MicroSeconds:
			return parquet.Int64Value(t.UnixMicro())
		default:
			return parquet.Int64Value(t.UnixNano())
		}
	default:
		return parquet.ByteArrayValue(text)
	}
}

// samples is what reading a file of samples shows.
func (l layout) samples(kind normalize.Kind) []string {
	var shown []string
	for row := range l.rows {
		r := Record{Line: row + 1}
		r.Raw.Kind = kind
		for i, field := range normalize.Fields(kind) {
			r.Raw.Values[i] = sample(field, row)
		}
		shown = append(shown, show(&r))
	}
	return shown
}

var layouts = map[string]layout{
	"texts": {
		parquet.String(),
		parquet.String(),
		parquet.String(),
		false,
		60,
		23,
		[]parquet.WriterOption{smallPages},
	},
	"bare texts": {
		bareText,
		bareText,
		bareText,
		false,
		60,
		20,
		[]parquet.WriterOption{smallPages, parquet.DataPageVersion(1)},
	},
	"enums": {parquet.String(), parquet.String(), parquet.Enum(), true, 60, 60, nil},
	"UUIDs and millis": {
		parquet.UUID(),
		parquet.Timestamp(parquet.Millisecond),
		parquet.String(),
		false,
		60,
		23,
		[]parquet.WriterOption{smallPages, parquet.Compression(&parquet.Zstd)},
	},
	"bytes and micros": {
		fixed16,
		parquet.Timestamp(parquet.Microsecond),
		parquet.String(),
		false,
		60,
		7,
		[]parquet.WriterOption{smallPages, parquet.DataPageVersion(1), parquet.Compression(&parquet.Snappy)},
	},
	"nanos": {parquet.UUID(), parquet.Timestamp(parquet.Nanosecond), parquet.String(), false, 60, 1, nil},
	"dictionaries": {
		parquet.UUID(),
		parquet.Timestamp(parquet.Nanosecond),
		parquet.String(),
		true,
		60,
		23,
		[]parquet.WriterOption{smallPages, parquet.Compression(&parquet.Lz4Raw)},
	},
	"more than chunks": {
		parquet.UUID(),
		parquet.Timestamp(parquet.Millisecond),
		parquet.String(),
		true,
		3073,
		2053,
		nil,
	},
	"nothing": {parquet.UUID(), parquet.Timestamp(parquet.Millisecond), parquet.String(), false, 0, 1, nil},
}
