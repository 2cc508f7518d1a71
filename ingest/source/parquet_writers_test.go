package source

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/runlens/runlens/ingest/normalize"
)

// writtenByOthers has a file for every cell of codec, version of the data pages and encoding that ClickHouse, DuckDB
// and arrow-go write (testdata/README.md). All have the same 200 samples of agents.
const writtenByOthers = "testdata/parquet.zip"

var codecs = []parquet.WriterOption{
	parquet.Compression(&parquet.Uncompressed), parquet.Compression(&parquet.Snappy), parquet.Compression(&parquet.Gzip),
	parquet.Compression(&parquet.Brotli), parquet.Compression(&parquet.Zstd), parquet.Compression(&parquet.Lz4Raw),
}

// Every codec, every version of data pages and every encoding is read right, whoever wrote the file.
func TestParquetOfOtherWriters(t *testing.T) {
	archive, err := zip.OpenReader(writtenByOthers)
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	seen := map[string]bool{}
	for _, entry := range archive.File {
		in, err := entry.Open()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSuffix(entry.Name, ".parquet"), func(t *testing.T) {
			parts := strings.Split(t.Name()[strings.LastIndex(t.Name(), "/")+1:], "_")
			cell := cellOf(t, content, seen)
			if want := strings.Join(parts[1:len(parts)-1], "_"); !strings.HasPrefix(cell, want+" ") {
				t.Fatalf("the file has %s, not %s", cell, want)
			}
			want := layout{rows: 200, perGroup: 200}.samples(normalize.KindAgent)
			if strings.HasSuffix(t.Name(), "null-column") {
				for i := range want {
					want[i] = withoutSlug(want[i], strings.HasPrefix(parts[0], "duckdb"))
				}
			}
			t.Log(cell)
			checkCell(t, cell, content, normalize.KindAgent, want)
		})
	}
	for _, encoding := range []format.Encoding{
		format.Plain, format.RLEDictionary, format.DeltaBinaryPacked, format.DeltaLengthByteArray, format.DeltaByteArray,
		format.ByteStreamSplit,
	} {
		for _, codec := range []string{"UNCOMPRESSED", "SNAPPY", "GZIP", "BROTLI", "ZSTD", "LZ4_RAW"} {
			for _, version := range []string{"v1", "v2"} {
				cell := fmt.Sprintf("%s_%s %s", codec, version, encoding)
				// arrow-go makes no dictionary that makes a file larger. TestParquetLayouts has this cell ("enums").
				if !seen[cell] && cell != "UNCOMPRESSED_v2 RLE_DICTIONARY" {
					t.Errorf("no file has %s", cell)
				}
			}
		}
	}
}

// The library's own writer, with pages of every size up to many times the sizes of the buffers it pools.
func TestParquetOfOwnWriter(t *testing.T) {
	for _, encoded := range [][2]parquet.Node{
		{parquet.Encoded(parquet.UUID(), &parquet.DeltaByteArray),
			parquet.Encoded(parquet.Timestamp(parquet.Millisecond), &parquet.ByteStreamSplit)},
		{parquet.UUID(), parquet.Encoded(parquet.Timestamp(parquet.Millisecond), &parquet.DeltaBinaryPacked)},
	} {
		for _, codec := range codecs {
			for version := 1; version <= 2; version++ {
				for _, page := range []int{1_000, 20_000} {
					l := layout{
						encoded[0],
						encoded[1],
						parquet.String(),
						false,
						600,
						450,
						[]parquet.WriterOption{codec, parquet.DataPageVersion(version), parquet.PageBufferSize(page)},
					}
					content := l.write(t, l.nodes(normalize.KindRun), sample)
					cell := cellOf(t, content, map[string]bool{})
					checkCell(t, fmt.Sprint(cell, " of pages of ", page), content, normalize.KindRun, l.samples(normalize.KindRun))
				}
			}
		}
	}
}

// Impala, Hive and older versions of Spark write instants as INT96.
func TestParquetInt96(t *testing.T) {
	for want, day := range map[string][2]uint64{
		"1970-01-01T00:00:00.000Z": {2440588, 0},
		"1969-12-31T23:59:59.999Z": {2440587, 86_399_999_999_999},
		"2026-01-31T09:34:56.123Z": {2461072, 34_496_123_999_999},
	} {
		value := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(nil, day[1]), uint32(day[0]))
		column := column{form: int96s}
		raw := normalize.Raw{Kind: normalize.KindRun, Binary: 1 << 2}
		if raw.Values[2] = column.shown(value); string(raw.Text(2)) != want {
			t.Errorf("got %s, want %s", raw.Text(2), want)
		}
	}
}

// A codec that cannot be unpacked is named; so is a page that is not as long as its header says.
func TestParquetPagesOfWrongLength(t *testing.T) {
	for _, c := range []struct {
		codec  format.CompressionCodec
		packed []byte
		size   int64
		want   string
	}{
		{format.Lz4Raw, []byte{0x10, 'x'}, 1, ""},
		{format.Lz4Raw, []byte{0x10, 'x'}, 2, "LZ4_RAW: 1 bytes, not 2"},
		{format.Lz4Raw, []byte{0x20, 'x', 'y'}, 1, "LZ4_RAW: 2 bytes, not 1"},
		{format.Lz4Raw, []byte{0x20, 'x'}, 2, "LZ4_RAW"},
		{format.Snappy, []byte{1, 0, 'x'}, 1, ""},
		{format.Snappy, []byte{1, 0, 'x'}, 2, "SNAPPY: 1 bytes, not 2"},
		{format.Gzip, gzipped(t, []byte("xy")), 2, ""},
		{format.Gzip, gzipped(t, []byte("xy")), 1, "GZIP: 2 bytes, not 1"},
		{format.Zstd, zstandard(t, []byte("xy")), 3, "ZSTD: 2 bytes, not 3"},
	} {
		got, err := unpackBlock(c.codec, make([]byte, c.size+1), c.packed, c.size)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s of %d bytes: %q, %v; want %q", c.codec, c.size, got, err, c.want)
		}
		large := new(spool)
		defer large.close()
		err = large.unpack(c.codec, bytes.NewReader(c.packed), c.size)
		if (err == nil) != (c.want == "") {
			t.Errorf("%s of %d bytes in a file: %v; want %q", c.codec, c.size, err, c.want)
		}
	}
}

func checkCell(t *testing.T, cell string, content []byte, kind normalize.Kind, want []string) {
	t.Helper()
	f := onDisk(t, Parquet, kind, content)
	got, _, err := records(f, Position{})
	if err != nil {
		t.Errorf("%s: %v", cell, err)
		return
	}
	wrong := 0
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			wrong++
		}
	}
	if wrong > 0 || len(got) != len(want) {
		t.Errorf("%s: %d of %d rows are wrong", cell, wrong, len(want))
		return
	}
	for _, row := range []int{1, len(want) / 2, len(want) - 1} {
		if got, _ := mustRead(t, f, Position{Lines: row}); !slices.Equal(got, want[row:]) {
			t.Errorf("%s: other rows from row %d", cell, row)
		}
	}
}

// cellOf names the codec, the version of the data pages and the encodings of a file, and adds them to seen.
func cellOf(t *testing.T, content []byte, seen map[string]bool) string {
	t.Helper()
	file, err := parquet.OpenFile(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	var place string
	encodings := map[string]bool{}
	pages := pageReader{content: bytes.NewReader(content)}
	for _, column := range file.Metadata().RowGroups[0].Columns {
		for offset, end := boundsOf(&column.MetaData); offset < end; {
			var header format.PageHeader
			n, err := pages.header(&header, offset, end)
			if err != nil {
				t.Fatal(err)
			}
			offset += n + int64(header.CompressedPageSize)
			if header.DictionaryPageHeader.Valid {
				continue
			}
			version, encoding := "v1", header.DataPageHeader.V.Encoding
			if header.DataPageHeaderV2.Valid {
				version, encoding = "v2", header.DataPageHeaderV2.V.Encoding
			}
			place = fmt.Sprintf("%s_%s", column.MetaData.Codec, version)
			encodings[encoding.String()] = true
			seen[place+" "+encoding.String()] = true
		}
	}
	return place + " " + strings.Join(slices.Sorted(maps.Keys(encodings)), ",")
}

// withoutSlug is what a file shows of a sample whose slug, or slug and deletion, is a column without values.
func withoutSlug(shown string, deletedToo bool) string {
	cells := splitShown(shown)
	cells[len(cells)-3] = "-"
	if deletedToo {
		cells[len(cells)-2] = "-"
	}
	return strings.Join(cells, " ")
}

// splitShown splits at the spaces that are in no quotes.
func splitShown(shown string) []string {
	quoted := false
	return strings.FieldsFunc(shown, func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return r == ' ' && !quoted
	})
}
