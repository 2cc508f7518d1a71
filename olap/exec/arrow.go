package exec

import (
	"bytes"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/runlens/runlens/olap/compile"
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
		for i, value := range row {
			value.appendArrow(batch.Field(i))
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

var arrowTypes = map[compile.Kind]arrow.DataType{
	compile.Text: arrow.BinaryTypes.String, compile.Day: arrow.FixedWidthTypes.Date32,
	compile.Count: arrow.PrimitiveTypes.Int64, compile.Ratio: arrow.PrimitiveTypes.Float64,
}

func (v Value) appendArrow(column array.Builder) {
	switch v.kind {
	case compile.Text:
		column.(*array.StringBuilder).Append(v.text)
	case compile.Day:
		column.(*array.Date32Builder).Append(arrow.Date32(int64(v.bits)))
	case compile.Count:
		column.(*array.Int64Builder).Append(int64(v.bits))
	case compile.Ratio:
		column.(*array.Float64Builder).Append(math.Float64frombits(v.bits))
	default:
		column.AppendNull()
	}
}
