package source

import (
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
	"github.com/pierrec/lz4/v4"
)

const (
	// maxPageBytes bounds a page as it is unpacked. Writers make pages of about a megabyte.
	maxPageBytes = 256 << 20
	// maxPageHeaderBytes bounds the header of a page, which may hold the least and the greatest value.
	maxPageHeaderBytes = 16 << 20
)

// A vetter walks over the pages of column chunks before the library reads them. The library asks
// for the memory that a header asks for before it looks at the page, takes pages with fewer values
// than were announced, which moves all values behind them to other rows, and never ends with LZ4
// that cannot be unpacked.
type vetter struct {
	content  io.ReaderAt
	header   []byte
	packed   []byte
	unpacked []byte
}

// vet reads the headers of all pages of a chunk.
func (v *vetter) vet(chunk *format.ColumnMetaData) error {
	offset := chunk.DataPageOffset
	if chunk.DictionaryPageOffset != 0 {
		offset = chunk.DictionaryPageOffset
	}
	if offset < 0 || chunk.TotalCompressedSize < 0 {
		return fmt.Errorf("pages at %d of %d bytes: %w", offset, chunk.TotalCompressedSize, parquet.ErrCorrupted)
	}
	end := offset + chunk.TotalCompressedSize
	for values := int64(0); values < chunk.NumValues; {
		var header format.PageHeader
		n, err := v.read(&header, offset, end)
		if err != nil {
			return err
		}
		offset += n
		size, unpacked := int64(header.CompressedPageSize), int64(header.UncompressedPageSize)
		if size < 0 || size > end-offset || unpacked < 0 || unpacked > maxPageBytes {
			return fmt.Errorf("a page of %d bytes, unpacked %d: %w", size, unpacked, parquet.ErrCorrupted)
		}
		levels, packed := int64(0), true // what stands unpacked in front of the values
		switch {
		case header.DataPageHeader.Valid:
			n = int64(header.DataPageHeader.V.NumValues)
			values += n
		case header.DataPageHeaderV2.Valid:
			page := &header.DataPageHeaderV2.V
			n = int64(page.NumValues)
			values += n
			levels = int64(page.RepetitionLevelsByteLength) + int64(page.DefinitionLevelsByteLength)
			packed = !page.IsCompressed.Valid || page.IsCompressed.V
		case header.DictionaryPageHeader.Valid:
			if n = int64(header.DictionaryPageHeader.V.NumValues); n > unpacked {
				return fmt.Errorf("%d values in a dictionary of %d bytes: %w", n, unpacked, parquet.ErrCorrupted)
			}
		}
		if n < 0 || values > chunk.NumValues || levels < 0 || levels > min(size, unpacked) {
			return fmt.Errorf("a page of %d values: %w", n, parquet.ErrCorrupted)
		}
		if chunk.Codec == format.Lz4Raw && packed {
			if err := v.unpack(offset+levels, size-levels, unpacked-levels); err != nil {
				return err
			}
		}
		offset += size
	}
	return nil
}

// read reads a header and returns its length, which is known only when it has been read.
func (v *vetter) read(header *format.PageHeader, offset, end int64) (int64, error) {
	for size := int64(512); ; size *= 8 {
		size = min(size, max(end-offset, 0), maxPageHeaderBytes)
		v.header = resized(v.header, size)
		if _, err := v.content.ReadAt(v.header, offset); err != nil {
			return 0, fmt.Errorf("the header of a page: %w", err)
		}
		var protocol thrift.CompactProtocol
		reader := protocol.NewReaderFromBytes(v.header)
		err := thrift.NewDecoder(reader).Decode(header)
		if err == nil {
			return int64(reader.BytesRead()), nil
		}
		if size == end-offset || size == maxPageHeaderBytes || size <= 0 {
			return 0, fmt.Errorf("the header of a page: %w", err)
		}
		*header = format.PageHeader{}
	}
}

// unpack tries to unpack LZ4.
func (v *vetter) unpack(offset, size, unpacked int64) error {
	v.packed, v.unpacked = resized(v.packed, size), resized(v.unpacked, unpacked+1)
	if _, err := v.content.ReadAt(v.packed, offset); err != nil {
		return err
	}
	if n, err := lz4.UncompressBlock(v.packed, v.unpacked); err != nil || int64(n) != unpacked {
		return fmt.Errorf("LZ4 of %d bytes, not %d: %w", n, unpacked, parquet.ErrCorrupted)
	}
	return nil
}

func resized(b []byte, size int64) []byte {
	if int64(cap(b)) < size {
		return make([]byte, size)
	}
	return b[:size]
}
