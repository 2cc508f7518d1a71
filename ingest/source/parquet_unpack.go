package source

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
	"github.com/pierrec/lz4/v4"
)

// An unpacker serves the pages of one column chunk to the library as if the file were not compressed. The library
// itself loses what LZ4 unpacks into a larger buffer than it gave, and then shows older memory as values. The unpacker
// compares the length of every unpacked page with its header. It implements io.ReaderAt for reads in order only.
type unpacker struct {
	pages  pageReader
	codec  format.CompressionCodec
	offset int64 // of what has not been unpacked
	end    int64 // of the chunk
	ready  []byte
	served int64 // bytes

	packed, unpacked, buffer []byte // used again for each page
}

// newUnpacker returns an unpacker of the chunk's pages from the one that has a row, counted from 0, and
// the row's place in that page. The dictionary always comes first.
func newUnpacker(content io.ReaderAt, chunk *format.ColumnMetaData, row int64) (*unpacker, int64, error) {
	u := &unpacker{pages: pageReader{content: content}, codec: chunk.Codec}
	u.offset, u.end = boundsOf(chunk)
	for row > 0 {
		var header format.PageHeader
		n, err := u.pages.header(&header, u.offset, u.end)
		if err != nil {
			return nil, 0, err
		}
		rows := int64(header.DataPageHeader.V.NumValues + header.DataPageHeaderV2.V.NumValues)
		if header.DictionaryPageHeader.Valid {
			if err := u.next(); err != nil {
				return nil, 0, err
			}
			continue
		}
		if rows > row {
			break
		}
		row -= rows
		u.offset += n + int64(header.CompressedPageSize)
	}
	return u, row, nil
}

// boundsOf is where the pages of a chunk begin, inclusive, and end, exclusive.
func boundsOf(chunk *format.ColumnMetaData) (begin, end int64) {
	begin = chunk.DataPageOffset
	if chunk.DictionaryPageOffset != 0 {
		begin = chunk.DictionaryPageOffset
	}
	return begin, begin + chunk.TotalCompressedSize
}

// ReadAt is part of io.ReaderAt. The offset counts the bytes of unpacked pages.
func (u *unpacker) ReadAt(p []byte, offset int64) (n int, err error) {
	if offset != u.served {
		return 0, fmt.Errorf("a dictionary is missing: %w", parquet.ErrCorrupted)
	}
	for n < len(p) {
		if len(u.ready) == 0 {
			if u.offset >= u.end {
				return n, io.EOF
			}
			if err := u.next(); err != nil {
				return n, err
			}
		}
		copied := copy(p[n:], u.ready)
		u.ready = u.ready[copied:]
		u.served += int64(copied)
		n += copied
	}
	return n, nil
}

// next unpacks a page into ready.
func (u *unpacker) next() error {
	var header format.PageHeader
	n, err := u.pages.header(&header, u.offset, u.end)
	if err != nil {
		return err
	}
	size, unpacked := int64(header.CompressedPageSize), int64(header.UncompressedPageSize)
	u.packed = resized(u.packed, size)
	if _, err := u.pages.content.ReadAt(u.packed, u.offset+n); err != nil {
		return err
	}
	u.offset += n + size
	if header.CRC != 0 && uint32(header.CRC) != crc32.ChecksumIEEE(u.packed) {
		return fmt.Errorf("a page with another checksum than its header's: %w", parquet.ErrCorrupted)
	}
	levels, packed := int64(0), true // levels come before the values and are not packed
	if page := &header.DataPageHeaderV2; page.Valid {
		levels = int64(page.V.RepetitionLevelsByteLength) + int64(page.V.DefinitionLevelsByteLength)
		packed = !page.V.IsCompressed.Valid || page.V.IsCompressed.V
	}
	values := u.packed[levels:]
	if packed {
		if values, err = u.unpack(values, unpacked-levels); err != nil {
			return err
		}
	}
	header.UncompressedPageSize = int32(levels) + int32(len(values))
	header.CompressedPageSize, header.CRC = header.UncompressedPageSize, 0
	header.DataPageHeader.V.Statistics, header.DataPageHeaderV2.V.Statistics = format.Statistics{}, format.Statistics{}
	head, err := thrift.Marshal(new(thrift.CompactProtocol), &header)
	if err != nil {
		return err
	}
	u.buffer = append(append(append(append(u.buffer[:0], u.ready...), head...), u.packed[:levels]...), values...)
	u.ready = u.buffer
	return nil
}

// unpack returns exactly size bytes.
func (u *unpacker) unpack(packed []byte, size int64) ([]byte, error) {
	if u.codec == format.Uncompressed || size == 0 {
		return packed, nil
	}
	u.unpacked = resized(u.unpacked, size+1) // one more byte shows that a page is longer
	var err error
	if u.codec == format.Lz4Raw {
		var n int
		n, err = lz4.UncompressBlock(packed, u.unpacked)
		u.unpacked = u.unpacked[:max(n, 0)]
	} else {
		u.unpacked, err = parquet.LookupCompressionCodec(u.codec).Decode(u.unpacked, packed)
	}
	if err == nil && int64(len(u.unpacked)) != size {
		err = fmt.Errorf("%d bytes, not %d: %w", len(u.unpacked), size, parquet.ErrCorrupted)
	}
	if err != nil {
		return nil, fmt.Errorf("a page that is compressed with %s: %w", u.codec, err)
	}
	return u.unpacked, nil
}

// unpacks reports whether the pages of a codec can be unpacked.
func unpacks(codec format.CompressionCodec) bool {
	switch codec {
	case format.Uncompressed, format.Snappy, format.Gzip, format.Brotli, format.Zstd, format.Lz4Raw:
		return true
	default:
		return false
	}
}

// plainColumns returns the columns of a file with the same schema that is not compressed and has one row group, for
// unpackers to read from.
func plainColumns(
	schema []format.SchemaElement, columns []format.ColumnChunk, options ...parquet.FileOption,
) ([]parquet.ColumnChunk, error) {
	group := format.RowGroup{Columns: make([]format.ColumnChunk, len(columns))}
	for i := range columns {
		packed := &columns[i].MetaData
		group.Columns[i].MetaData = format.ColumnMetaData{
			Type: packed.Type, Encoding: packed.Encoding, PathInSchema: packed.PathInSchema,
			TotalCompressedSize: math.MaxInt64, // the unpacker ends it
		}
	}
	metadata := format.FileMetaData{Schema: schema, RowGroups: []format.RowGroup{group}}
	footer, err := thrift.Marshal(new(thrift.CompactProtocol), &metadata)
	if err != nil {
		return nil, err
	}
	content := append([]byte("PAR1"), footer...)
	content = append(binary.LittleEndian.AppendUint32(content, uint32(len(footer))), "PAR1"...)
	file, err := parquet.OpenFile(bytes.NewReader(content), int64(len(content)), options...)
	if err != nil {
		return nil, err
	}
	return file.RowGroups()[0].ColumnChunks(), nil
}
