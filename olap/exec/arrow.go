package exec

import (
	"bytes"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/runlens/runlens/olap/value"
)

// AppendArrow appends the rows as a stream of Arrow's IPC format, in one batch: texts as utf8, days as date32,
// counts as int64 and ratios as float64. A field's metadata has the member of its column.
func (t *Table) AppendArrow(b []byte) []byte {
	fields := make([]arrow.Field, len(t.Columns))
	for i, c := range t.Columns {
		fields[i] = arrow.Field{Name: c.Name, Type: arrowTypes[c.Kind], Nullable: true,
			Metadata: arrow.NewMetadata([]string{"member"}, []string{c.Member})}
	}
	batch := array.NewRecordBuilder(memory.NewGoAllocator(), arrow.NewSchema(fields, nil))
	defer batch.Release()
	for _, row := range t.Rows {
		for i, v := range row {
			appendArrow(v, batch.Field(i))
		}
	}
	record := batch.NewRecordBatch()
	defer record.Release()
	out := bytes.NewBuffer(b)
	stream := ipc.NewWriter(out, ipc.WithSchema(record.Schema()))
	err := stream.Write(record)
	if closed := stream.Close(); err == nil {
		err = closed
	}
	if err != nil {
		panic(err) // a buffer takes everything
	}
	return out.Bytes()
}

var arrowTypes = map[value.Kind]arrow.DataType{
	value.Text: arrow.BinaryTypes.String, value.Day: arrow.FixedWidthTypes.Date32,
	value.Count: arrow.PrimitiveTypes.Int64, value.Ratio: arrow.PrimitiveTypes.Float64,
}

func appendArrow(v value.Value, column array.Builder) {
	switch v.Kind {
	case value.Text:
		column.(*array.StringBuilder).Append(v.Text)
	case value.Day:
		column.(*array.Date32Builder).Append(arrow.Date32(v.Number))
	case value.Count:
		column.(*array.Int64Builder).Append(v.Number)
	case value.Ratio:
		column.(*array.Float64Builder).Append(v.Ratio())
	default:
		column.AppendNull()
	}
}
