package source

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

const (
	// maxFooterBytes and maxFooterItems bound the memory of a footer, to 256 MiB about. A row group of the columns of a
	// record has about 150 items.
	maxFooterBytes = 16 << 20
	maxFooterItems = 1 << 19
)

// readFooter reads what a file says of itself. (The library's OpenFile makes room for as many items as a list says it
// has, before it reads the first: a damaged length ends the process.)
func readFooter(content io.ReaderAt, size int64) (*format.FileMetaData, error) {
	const ends = 4 + 4 // the footer's length, and the magic bytes
	var head [4]byte
	var tail [ends]byte
	if size < int64(len(head)+len(tail)) {
		return nil, fmt.Errorf("it has %d bytes: %w", size, io.ErrUnexpectedEOF)
	}
	if _, err := content.ReadAt(head[:], 0); err != nil {
		return nil, err
	}
	if _, err := content.ReadAt(tail[:], size-ends); err != nil {
		return nil, err
	}
	if string(head[:]) == "PARE" || string(tail[4:]) == "PARE" {
		return nil, unfit("is encrypted, which is not supported")
	}
	if string(head[:]) != string(parquetMagic) || string(tail[4:]) != string(parquetMagic) {
		return nil, fmt.Errorf("it begins with %q and ends with %q", head, tail[4:])
	}
	length := int64(binary.LittleEndian.Uint32(tail[:]))
	if length > size-ends-int64(len(head)) {
		return nil, fmt.Errorf("a footer of %d bytes in a file of %d: %w", length, size, parquet.ErrCorrupted)
	}
	if length > maxFooterBytes {
		return nil, unfit("has a footer of %d bytes, more than %d; write the file with larger row groups", length,
			maxFooterBytes)
	}
	text := make([]byte, length)
	if _, err := content.ReadAt(text, size-ends-length); err != nil {
		return nil, err
	}
	footer := new(format.FileMetaData)
	in := &boundedReader{BytesReader: new(thrift.CompactProtocol).NewReaderFromBytes(text), size: len(text)}
	if err := thrift.NewDecoder(in).Decode(footer); err != nil {
		if large, ok := errors.AsType[columnError](err); ok {
			return nil, large
		}
		return nil, fmt.Errorf("the footer: %w", err)
	}
	if left := len(text) - in.BytesRead(); left > 0 {
		return nil, fmt.Errorf("%d bytes after the footer: %w", left, parquet.ErrCorrupted)
	}
	if len(footer.Schema) == 0 {
		return nil, parquet.ErrMissingRootColumn
	}
	return footer, nil
}

// A boundedReader refuses lists of more items than there are bytes, and too many items of all lists.
type boundedReader struct {
	thrift.BytesReader
	size  int
	items int
}

func (r *boundedReader) count(items int32) error {
	if int(items) > r.size-r.BytesRead() {
		return fmt.Errorf("a list of %d in %d bytes: %w", items, r.size-r.BytesRead(), parquet.ErrCorrupted)
	}
	if r.items += int(items); r.items > maxFooterItems {
		return unfit("has a footer of more than %d items; write the file with larger row groups", maxFooterItems)
	}
	return nil
}

func (r *boundedReader) ReadList() (thrift.List, error) {
	list, err := r.BytesReader.ReadList()
	if err == nil {
		err = r.count(list.Size)
	}
	return list, err
}

func (r *boundedReader) ReadSet() (thrift.Set, error) {
	set, err := r.BytesReader.ReadSet()
	if err == nil {
		err = r.count(set.Size)
	}
	return set, err
}

func (r *boundedReader) ReadMap() (thrift.Map, error) {
	m, err := r.BytesReader.ReadMap()
	if err == nil {
		err = r.count(m.Size)
	}
	return m, err
}

// Discard is what the decoder leaves fields out with that it does not know.
func (r *boundedReader) Discard(n int) (int, error) {
	return r.BytesReader.(interface{ Discard(int) (int, error) }).Discard(n)
}
