package source

import (
	"fmt"
	"hash/crc32"
	"io"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// largePage is how long a page may be, unpacked, that is unpacked in memory. Most writers' pages have about a megabyte.
// DuckDB has one page for a column of a row group, up to 100 MB: such a page is unpacked into a temporary file. Tests
// change it.
var largePage int64 = 2 << 20

// pages are the pages of one column chunk after another, unpacked.
type pages struct {
	*pageReader
	codec  format.CompressionCodec
	offset int64 // of the next page
	end    int64 // of the chunk, exclusive

	memory []byte // of the open page
	spool  *spool // of the open page; nil until there was a large one
}

// A visitor gets a page with its header, its body, which has the levels of data pages of version 1, and where its
// packed bytes begin in the file, which has those of version 2.
type visitor func(header *format.PageHeader, page body, begin int64) error

// open begins with the chunk's page that has a row, counted from 0, and returns the row's place in that page. A
// dictionary always comes first.
func (p *pages) open(chunk *format.ColumnMetaData, row int64, visit visitor) (int64, error) {
	p.codec = chunk.Codec
	p.offset, p.end = boundsOf(chunk)
	for row > 0 {
		var header format.PageHeader
		n, err := p.header(&header, p.offset, p.end)
		if err != nil {
			return 0, err
		}
		if header.DictionaryPageHeader.Valid {
			if err := p.next(visit); err != nil {
				return 0, err
			}
			continue
		}
		rows := int64(header.DataPageHeader.V.NumValues + header.DataPageHeaderV2.V.NumValues)
		if rows > row {
			break
		}
		row -= rows
		p.offset += n + int64(header.CompressedPageSize)
	}
	return row, nil
}

// boundsOf is where the pages of a chunk begin, inclusive, and end, exclusive.
func boundsOf(chunk *format.ColumnMetaData) (begin, end int64) {
	begin = chunk.DataPageOffset
	if chunk.DictionaryPageOffset != 0 {
		begin = chunk.DictionaryPageOffset
	}
	return begin, begin + chunk.TotalCompressedSize
}

// next gives the next page to visit. It is io.EOF after the last one.
func (p *pages) next(visit visitor) error {
	if p.offset >= p.end {
		return io.EOF
	}
	var header format.PageHeader
	n, err := p.header(&header, p.offset, p.end)
	if err != nil {
		return err
	}
	begin, size := p.offset+n, int64(header.CompressedPageSize)
	p.offset = begin + size
	if header.CRC != 0 {
		sum := crc32.NewIEEE()
		p.packed = resized(p.packed, 64<<10)
		if _, err := io.CopyBuffer(sum, io.NewSectionReader(p.content, begin, size), p.packed); err != nil {
			return err
		}
		if sum.Sum32() != uint32(header.CRC) {
			return fmt.Errorf("a page with another checksum than its header's: %w", parquet.ErrCorrupted)
		}
	}
	codec, levels := p.codec, int64(0)
	if page := &header.DataPageHeaderV2; page.Valid {
		levels = int64(page.V.RepetitionLevelsByteLength) + int64(page.V.DefinitionLevelsByteLength)
		if page.V.IsCompressed.Valid && !page.V.IsCompressed.V {
			codec = format.Uncompressed
		}
	}
	unpacked, err := p.unpack(codec, begin+levels, size-levels, int64(header.UncompressedPageSize)-levels)
	if err != nil {
		return err
	}
	return visit(&header, unpacked, begin)
}

// unpack returns a page's bytes, which take exactly unpacked bytes. It belongs to pages until the next page.
func (p *pages) unpack(codec format.CompressionCodec, begin, size, unpacked int64) (body, error) {
	if size == 0 && unpacked == 0 {
		return body{}, nil
	}
	if codec == format.Uncompressed {
		if size != unpacked {
			return body{}, wrongLength(codec, size, unpacked)
		}
		if size > largePage {
			return body{file: p.content, begin: begin, size: size}, nil
		}
		p.memory = resized(p.memory, size)
		_, err := p.content.ReadAt(p.memory, begin)
		return body{memory: p.memory, size: size}, err
	}
	if max(size, unpacked) > largePage {
		if p.spool == nil {
			p.spool = new(spool)
		}
		if err := p.spool.unpack(codec, io.NewSectionReader(p.content, begin, size), unpacked); err != nil {
			return body{}, err
		}
		return body{file: p.spool, size: unpacked}, nil
	}
	p.packed = resized(p.packed, size)
	if _, err := p.content.ReadAt(p.packed, begin); err != nil {
		return body{}, err
	}
	p.memory = resized(p.memory, unpacked+1) // one more byte shows that a page is longer
	var err error
	p.memory, err = unpackBlock(codec, p.memory, p.packed, unpacked)
	return body{memory: p.memory, size: unpacked}, err
}

func wrongLength(codec format.CompressionCodec, got, want int64) error {
	return fmt.Errorf("a page that is compressed with %s: %d bytes, not %d: %w", codec, got, want, parquet.ErrCorrupted)
}

// keep moves the open page, which is a dictionary, to where the pages after it leave it alone.
func (p *pages) keep(page body) body {
	if page.file == nil {
		p.memory = nil
	} else if page.file == p.spool {
		p.spool = nil
	}
	return page
}

func (p *pages) close() {
	if p.spool != nil {
		p.spool.close()
	}
	p.spool = nil
}
