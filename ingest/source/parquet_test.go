package source

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
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
		r := Record{Line: row + 1, RowGroup: row/l.perGroup + 1, Row: row%l.perGroup + 1}
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
		3*chunkValues + 1,
		2*chunkValues + 5,
		nil,
	},
	"nothing": {parquet.UUID(), parquet.Timestamp(parquet.Millisecond), parquet.String(), false, 0, 1, nil},
}

func TestParquetLayouts(t *testing.T) {
	for name, l := range layouts {
		for _, kind := range normalize.Kinds {
			t.Run(name+" "+string(kind), func(t *testing.T) {
				f := onDisk(t, Parquet, kind, l.write(t, l.nodes(kind), sample))
				got, after := mustRead(t, f, Position{})
				if want := l.samples(kind); strings.Join(got, "\n") != strings.Join(want, "\n") {
					for i := range min(len(got), len(want)) {
						if got[i] != want[i] {
							t.Fatalf("got\n%s\nwant\n%s", got[i], want[i])
						}
					}
					t.Fatalf("%d records, want %d", len(got), len(want))
				}
				for i, at := range after {
					if at != (Position{Lines: i + 1}) {
						t.Fatalf("position %+v after record %d", at, i+1)
					}
				}
				if l.rows < 100 {
					checkResume(t, f)
				}
			})
		}
	}
}

// What is finer than a millisecond is cut off towards the past, whichever instant it is.
func TestParquetInstants(t *testing.T) {
	for want, c := range map[string]struct {
		form form
		n    int64
	}{
		"2026-01-31T09:34:56.123Z": {millis, 1769852096123},
		"2026-01-31T09:34:56.000Z": {micros, 1769852096000007},
		"2026-01-31T09:34:56.124Z": {nanos, 1769852096124456789},
		"1969-12-31T23:59:59.999Z": {millis, -1},
		"1969-12-31T23:59:59.998Z": {nanos, -1000001},
		"1970-01-01T00:00:00.000Z": {micros, 0},
		"2299-12-31T23:59:59.999Z": {millis, 10413791999999},
	} {
		column := column{form: c.form, unread: []parquet.Value{parquet.Int64Value(c.n)}}
		raw := normalize.Raw{Kind: normalize.KindRun, Binary: 1 << 2}
		if raw.Values[2] = column.next(); string(raw.Text(2)) != want {
			t.Errorf("got %s, want %s", raw.Text(2), want)
		}
	}
}

func TestParquetEmptyText(t *testing.T) {
	column := column{unread: []parquet.Value{parquet.ByteArrayValue(nil), parquet.NullValue()}}
	if text, null := column.next(), column.next(); text == nil || null != nil {
		t.Errorf("got %#v and %#v, want an empty text and null", text, null)
	}
}

// Where the end cannot be read first the content goes to a temporary file, which nobody has to remove.
func TestParquetStreams(t *testing.T) {
	content := smallLayout.write(t, smallLayout.nodes(normalize.KindRun), sample)
	temporary := t.TempDir()
	sizes := map[string]int{"gzip": len(gzipped(t, content)), "zstd": len(zstandard(t, content))}
	for name, f := range map[string]*File{
		"file":   onDisk(t, Parquet, normalize.KindRun, content),
		"stream": stream(Parquet, normalize.KindRun, content),
		"gzip":   onDisk(t, Parquet, normalize.KindRun, gzipped(t, content)),
		"zstd":   stream(Parquet, normalize.KindRun, zstandard(t, content)),
		"pipe": {Format: Parquet, Kind: normalize.KindRun, Open: func() (io.ReadCloser, error) {
			r, w, err := os.Pipe()
			go func() {
				w.Write(content)
				w.Close()
			}()
			return r, err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TMPDIR", temporary)
			if got, _ := mustRead(t, f, Position{}); !slices.Equal(got, smallLayout.samples(normalize.KindRun)) {
				t.Errorf("got %s", strings.Join(got, "\n"))
			}
			whole := f.BytesRead()
			if want := cmp.Or(sizes[name], len(content)); whole != int64(want) {
				t.Errorf("%d bytes read, want %d", whole, want)
			}
			checkResume(t, f)
			reader, err := f.From(Position{Lines: 29})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := reader.Next(); err != nil || f.BytesRead() != whole/2 {
				t.Errorf("in the middle %d bytes of %d were read, %v", f.BytesRead(), whole, err)
			}
			if left, err := os.ReadDir(temporary); len(left) > 0 || err != nil {
				t.Errorf("left behind: %v, %v", left, err)
			}
			if err := reader.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	f := stream(Parquet, normalize.KindRun, gzipped(t, content))
	t.Setenv("TMPDIR", temporary+"/none")
	if _, err := f.From(Position{}); !errors.Is(err, os.ErrNotExist) || strings.Contains(err.Error(), "not a valid") {
		t.Errorf("without a place for a temporary file: %v", err)
	}
}

// A resumed read does not touch what lies before: its pages are damaged here.
func TestParquetSeeks(t *testing.T) {
	l := smallLayout
	content := l.write(t, l.nodes(normalize.KindRun), sample)
	file, err := parquet.OpenFile(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	for _, index := range file.OffsetIndexes()[:2*len(normalize.Fields(normalize.KindRun))] {
		page := index.PageLocations[0]
		content[page.Offset+int64(page.CompressedPageSize)-1] ^= 0xff // after its header
	}
	f := onDisk(t, Parquet, normalize.KindRun, content)
	for _, row := range []int{2*l.perGroup - 1, 2 * l.perGroup, l.rows - 1, l.rows} {
		if got, _ := mustRead(t, f, Position{Lines: row}); !slices.Equal(got, l.samples(normalize.KindRun)[row:]) {
			t.Errorf("from %d: got %s", row, strings.Join(got, "\n"))
		}
	}
	if _, _, err := records(f, Position{}); err == nil {
		t.Error("no page is damaged")
	}
	if _, _, err := records(f, Position{Lines: l.rows + 1}); err == nil ||
		!strings.Contains(err.Error(), "has only 60 rows") {
		t.Errorf("after the end: %v", err)
	}
}
