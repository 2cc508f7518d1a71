package source

import (
	"fmt"

	"github.com/parquet-go/parquet-go"
)

// maxDictionary is how many texts a dictionary may have, whose places are in memory. A row group of fewer rows never
// has more.
const maxDictionary = 1 << 20

// A dictionary has the values of a column to which pages refer.
type dictionary struct {
	page   body
	width  int // of a value; 0 of texts
	count  uint64
	begins []uint32 // of texts, with their lengths; one more is the end of the last one
	buffer []byte
}

func newDictionary(page body, width int, count uint64) (*dictionary, error) {
	d := &dictionary{page: page, width: width, count: count}
	if width > 0 {
		if count*uint64(width) > uint64(page.size) {
			return nil, fmt.Errorf("%d values in a dictionary of %d bytes: %w", count, page.size, parquet.ErrCorrupted)
		}
		return d, nil
	}
	if count > maxDictionary {
		return nil, unfit("has a dictionary of %d texts, more than %d; write the file with smaller row groups",
			count, maxDictionary)
	}
	d.begins = make([]uint32, 0, count+1)
	in := page.cursor(0, page.size)
	for range count {
		d.begins = append(d.begins, uint32(page.size-in.left()))
		length, err := in.uint32()
		if err == nil {
			err = in.skip(int64(length))
		}
		if err != nil {
			return nil, err
		}
	}
	d.begins = append(d.begins, uint32(page.size-in.left()))
	return d, nil
}

func (d *dictionary) value(i uint64) ([]byte, error) {
	if i >= d.count {
		return nil, fmt.Errorf("value %d of a dictionary of %d: %w", i, d.count, parquet.ErrCorrupted)
	}
	if d.width > 0 {
		return d.bytes(int64(i)*int64(d.width), int64(i+1)*int64(d.width))
	}
	begin, end := int64(d.begins[i])+4, int64(d.begins[i+1])
	if end-begin <= MaxLineBytes {
		return d.bytes(begin, end)
	}
	kept, err := d.bytes(begin, begin+keptBytes)
	if err != nil {
		return nil, err
	}
	return kept, ErrTooLong
}

// bytes returns a part of the page, which is valid until the next call.
func (d *dictionary) bytes(begin, end int64) ([]byte, error) {
	if d.page.file == nil {
		return d.page.memory[begin:end:end], nil
	}
	d.buffer = resized(d.buffer, end-begin)
	_, err := d.page.file.ReadAt(d.buffer, d.page.begin+begin)
	return d.buffer, err
}
