package source

import (
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

const (
	// maxPageBytes bounds a page as it is unpacked. Writers make pages of about a megabyte.
	maxPageBytes = 256 << 20
	// maxPageHeaderBytes bounds the header of a page, which may contain the least and the greatest value.
	maxPageHeaderBytes = 16 << 20
)

// A pageReader reads the headers of pages.
type pageReader struct {
	content io.ReaderAt
	bytes   []byte
	packed  []byte // of a page while it is unpacked
}

// vet walks over the pages of a column chunk before anything of it is read: pages with fewer
// values than were announced would move all values after them to other rows.
func (p *pageReader) vet(chunk *format.ColumnMetaData) error {
	offset, end := boundsOf(chunk)
	if offset < 0 || chunk.TotalCompressedSize < 0 {
		return fmt.Errorf("pages at %d of %d bytes: %w", offset, chunk.TotalCompressedSize, parquet.ErrCorrupted)
	}
	first := true
	for values := int64(0); values < chunk.NumValues; first = false {
		var header format.PageHeader
		n, err := p.header(&header, offset, end)
		if err != nil {
			return err
		}
		offset += n
		size, unpacked := int64(header.CompressedPageSize), int64(header.UncompressedPageSize)
		if size < 0 || size > end-offset || unpacked < 0 || unpacked > maxPageBytes {
			return fmt.Errorf("a page of %d bytes, unpacked %d: %w", size, unpacked, parquet.ErrCorrupted)
		}
		levels := int64(0)
		if err := vetKind(&header, first); err != nil {
			return err
		}
		n = 0
		switch {
		case header.DataPageHeader.Valid:
			n = int64(header.DataPageHeader.V.NumValues)
			values += n
		case header.DataPageHeaderV2.Valid:
			page := &header.DataPageHeaderV2.V
			n = int64(page.NumValues)
			values += n
			if page.RepetitionLevelsByteLength < 0 || page.DefinitionLevelsByteLength < 0 {
				return fmt.Errorf("levels of less than no bytes: %w", parquet.ErrCorrupted)
			}
			levels = int64(page.RepetitionLevelsByteLength) + int64(page.DefinitionLevelsByteLength)
		case header.DictionaryPageHeader.Valid:
			if n = int64(header.DictionaryPageHeader.V.NumValues); n > unpacked {
				return fmt.Errorf("%d values in a dictionary of %d bytes: %w", n, unpacked, parquet.ErrCorrupted)
			}
		}
		if n < 0 || values > chunk.NumValues || levels > min(size, unpacked) {
			return fmt.Errorf("a page of %d values: %w", n, parquet.ErrCorrupted)
		}
		offset += size
	}
	return nil
}

// vetKind refuses a page that is of several kinds: who reads it might take it for another one than who counted its
// values. A dictionary comes first, and once.
func vetKind(header *format.PageHeader, first bool) error {
	kinds := 0
	for _, valid := range []bool{header.DataPageHeader.Valid, header.DataPageHeaderV2.Valid,
		header.DictionaryPageHeader.Valid} {
		if valid {
			kinds++
		}
	}
	if kinds > 1 || header.DictionaryPageHeader.Valid && !first {
		return fmt.Errorf("a page of %d kinds: %w", kinds, parquet.ErrCorrupted)
	}
	return nil
}

// header reads a header and returns its length, which is known only when it has been read.
func (p *pageReader) header(header *format.PageHeader, offset, end int64) (int64, error) {
	for size := int64(512); ; size *= 8 {
		size = min(size, max(end-offset, 0), maxPageHeaderBytes)
		p.bytes = resized(p.bytes, size)
		if _, err := p.content.ReadAt(p.bytes, offset); err != nil {
			return 0, fmt.Errorf("the header of a page: %w", err)
		}
		var protocol thrift.CompactProtocol
		reader := protocol.NewReaderFromBytes(p.bytes)
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

func resized(b []byte, size int64) []byte {
	if int64(cap(b)) < size {
		return make([]byte, size)
	}
	return b[:size]
}
