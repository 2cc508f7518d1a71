package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/runlens/runlens/ingest/normalize"
)

const invalidFile = "is not a valid Parquet file: "

func TestParquetDamaged(t *testing.T) {
	for name, l := range layouts {
		if l.rows != 60 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			content := l.write(t, l.nodes(normalize.KindRun), sample)
			for size := 0; size < len(content); size += 1 + size/50 {
				if _, err := readDamaged(content[:size]); err == nil || !strings.HasPrefix(err.Error(), invalidFile) {
					t.Fatalf("the first %d bytes: %v", size, err)
				}
			}
			for i := 0; i < len(content); i += 1 + len(content)/300 {
				damaged := bytes.Clone(content)
				// The highest bit stays: it makes lengths of gigabytes.
				damaged[i] ^= byte(1 << (i % 7))
				var unfit columnError
				got, err := readDamaged(damaged)
				if err != nil && !strings.HasPrefix(err.Error(), invalidFile) && !errors.As(err, &unfit) {
					t.Fatalf("byte %d: %v", i, err)
				}
				if err == nil && got > 2*l.rows {
					t.Fatalf("byte %d: %d records of %d", i, got, l.rows)
				}
			}
		})
	}
}

// What only a wrong footer can say.
func TestParquetFooter(t *testing.T) {
	content := smallLayout.write(t, smallLayout.nodes(normalize.KindRun), sample)
	f := onDisk(t, Parquet, normalize.KindRun, content)
	for want, change := range map[string]func(*format.ColumnMetaData){
		`is not a valid Parquet file: row group 2: the column "agent_id": 22 values for 23 ` +
			`rows`: func(m *format.ColumnMetaData) { m.NumValues-- },
		`row group 2: the column "agent_id": is compressed with LZ4, which is not supported; ` +
			`write`: func(m *format.ColumnMetaData) { m.Codec = format.Lz4 },
		`row group 2: the column "agent_id": is compressed with LZO, which is not supported; ` +
			`write`: func(m *format.ColumnMetaData) { m.Codec = format.LZO },
		`is not a valid Parquet file: row group 2: the column "agent_id": a page ` +
			`of`: func(m *format.ColumnMetaData) { m.TotalCompressedSize-- },
		`is not a valid Parquet file: row group 2: the column "agent_id": the header of a ` +
			`page`: func(m *format.ColumnMetaData) { m.DataPageOffset = int64(len(content)) },
		`is not a valid Parquet file: row group 2: the column "agent_id": pages at ` +
			`-9`: func(m *format.ColumnMetaData) { m.DataPageOffset = -9 },
	} {
		reader, err := f.From(Position{})
		if err != nil {
			t.Fatal(err)
		}
		change(&reader.(*parquetRows).groups[1].Columns[0].MetaData)
		rows := 0
		for ; err == nil; rows++ {
			_, err = reader.Next()
		}
		if rows != smallLayout.perGroup+1 || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("row %d: got %v, want %s", rows, err, want)
		}
		reader.Close()
	}
}

// A file that cannot be read is not called damaged.
func TestParquetReadError(t *testing.T) {
	f := onDisk(t, Parquet, normalize.KindRun, smallLayout.write(t, smallLayout.nodes(normalize.KindRun), sample))
	reader, err := f.From(Position{})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	reader.(*parquetRows).closers[0].Close()
	for err == nil {
		_, err = reader.Next()
	}
	if !errors.Is(err, os.ErrClosed) || strings.Contains(err.Error(), invalidFile) {
		t.Errorf("got %v", err)
	}
}

func TestParquetVetter(t *testing.T) {
	body := []byte("xy")
	data := func(values int32) format.PageHeader {
		return format.PageHeader{DataPageHeader: thrift.New(format.DataPageHeader{NumValues: values})}
	}
	levels := func(values, length int32) format.PageHeader {
		return format.PageHeader{
			Type:             format.DataPageV2,
			DataPageHeaderV2: thrift.New(format.DataPageHeaderV2{NumValues: values, DefinitionLevelsByteLength: length}),
		}
	}
	dictionary := format.PageHeader{
		Type:                 format.DictionaryPage,
		DictionaryPageHeader: thrift.New(format.DictionaryPageHeader{NumValues: 3}),
	}
	before := levels(2, 2)
	before.DataPageHeaderV2.V.RepetitionLevelsByteLength = -1
	twice := levels(2, 0)
	twice.DataPageHeader = data(1).DataPageHeader
	page := data(2)
	dataPage, err := thrift.Marshal(new(thrift.CompactProtocol), &page)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		header         format.PageHeader
		size, unpacked int32
		codec          format.CompressionCodec
		body           []byte
		ok             bool
	}{
		"a page":                 {data(2), 2, 2, format.Uncompressed, body, true},
		"with levels":            {levels(2, 1), 2, 2, format.Uncompressed, body, true},
		"longer than the column": {data(2), 3, 3, format.Uncompressed, body, false},
		"of negative length":     {data(2), -2, 2, format.Uncompressed, body, false},
		"enormous":               {data(2), 2, maxPageBytes + 1, format.Snappy, body, false},
		"too many values":        {data(3), 2, 2, format.Uncompressed, body, false},
		"fewer than none":        {data(-1), 2, 2, format.Uncompressed, body, false},
		"too many levels":        {levels(2, 3), 2, 2, format.Uncompressed, body, false},
		"levels before the page": {before, 2, 2, format.Uncompressed, body, false},
		"of two kinds":           {twice, 2, 2, format.Uncompressed, body, false},
		"a dictionary":           {dictionary, 3, 3, format.Uncompressed, []byte("abc"), true},
		"a large dictionary":     {dictionary, 2, 2, format.Uncompressed, body, false},
	} {
		c.header.CompressedPageSize, c.header.UncompressedPageSize = c.size, c.unpacked
		content, err := thrift.Marshal(new(thrift.CompactProtocol), &c.header)
		if err != nil {
			t.Fatal(err)
		}
		content = append(append([]byte("PAR1"), content...), c.body...)
		chunk := format.ColumnMetaData{
			NumValues:           2,
			Codec:               c.codec,
			TotalCompressedSize: int64(len(content) - 4),
			DataPageOffset:      4,
		}
		if c.header.DictionaryPageHeader.Valid {
			chunk.DictionaryPageOffset, chunk.DataPageOffset = 4, int64(len(content))
			content = append(content, dataPage...)
			chunk.TotalCompressedSize += int64(len(dataPage))
		}
		err = (&pageReader{content: bytes.NewReader(content)}).vet(&chunk)
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// readDamaged goes around the spool, for speed.
func readDamaged(content []byte) (int, error) { return readDamagedOf(content, normalize.KindRun) }

func readDamagedOf(content []byte, kind normalize.Kind) (int, error) {
	r := &parquetRows{file: &File{Kind: kind}, closers: []io.Closer{io.NopCloser(nil)}}
	r.record.Raw.Kind = kind
	defer r.Close()
	if err := r.open(bytes.NewReader(content), int64(len(content))); err != nil {
		return 0, err
	}
	if err := r.seek(0); err != nil {
		return 0, err
	}
	for n := 0; ; n++ {
		if _, err := r.Next(); errors.Is(err, io.EOF) {
			return n, nil
		} else if err != nil {
			return n, err
		}
	}
}

// Memory does not grow with a row group, nor with the number of its values.
func TestParquetMemory(t *testing.T) {
	l := smallLayout
	l.rows, l.perGroup = 60_000, 60_000
	l.options = []parquet.WriterOption{parquet.PageBufferSize(64 << 10)}
	long := strings.Repeat("long ", 100)
	content := l.write(t, l.nodes(normalize.KindAgent), func(field string, row int) []byte {
		if field == "name" {
			return fmt.Append(nil, long, row)
		}
		return sample(field, row)
	})
	f := onDisk(t, Parquet, normalize.KindAgent, content)
	size := len(content)
	content = nil
	reader, err := f.From(Position{})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	var before, after, m runtime.MemStats
	var peak uint64
	runtime.GC()
	runtime.ReadMemStats(&before)
	for row := range l.rows {
		if _, err := reader.Next(); err != nil {
			t.Fatal(err)
		}
		if row%(l.rows/8) == 0 {
			runtime.GC()
			runtime.ReadMemStats(&m)
			peak = max(peak, m.HeapAlloc)
		}
	}
	runtime.ReadMemStats(&after)
	if held := int(peak) - int(before.HeapAlloc); held > 4<<20 || size < 30<<20 {
		t.Errorf("%d kB are held of a row group of %d kB", held>>10, size>>10)
	}
	if taken := after.TotalAlloc - before.TotalAlloc; taken > uint64(size)/2 {
		t.Errorf("%d kB were taken for a row group of %d kB", taken>>10, size>>10)
	}
	if each := float64(after.Mallocs-before.Mallocs) / float64(l.rows); each > 0.5 {
		t.Errorf("%.2f allocations a row", each)
	}
}

const benchmarkRows = 200_000

func BenchmarkParquet(b *testing.B) {
	l := layout{rows: benchmarkRows, perGroup: benchmarkRows / 2}
	l.options = []parquet.WriterOption{parquet.Compression(&parquet.Zstd)}
	for name, nodes := range map[string][3]parquet.Node{
		"binary": {parquet.UUID(), parquet.Timestamp(parquet.Millisecond),
			parquet.Encoded(parquet.String(), &parquet.RLEDictionary)},
		"text": {parquet.String(), parquet.String(), parquet.String()},
	} {
		l.id, l.instant, l.text = nodes[0], nodes[1], nodes[2]
		f := onDisk(b, Parquet, normalize.KindRun, l.write(b, l.nodes(normalize.KindRun), sample))
		b.Run(name, func(b *testing.B) { benchmark(b, f) })
	}
}

func benchmark(b *testing.B, f *File) {
	for b.Loop() {
		reader, err := f.From(Position{})
		if err != nil {
			b.Fatal(err)
		}
		for range benchmarkRows {
			if _, err := reader.Next(); err != nil {
				b.Fatal(err)
			}
		}
		reader.Close()
	}
	b.ReportMetric(float64(benchmarkRows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}
