package source

import (
	"encoding/binary"
	"fmt"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// Values decodes the values of a page that are not null, one after another, in memory that does not grow with the
// page. A value is the bytes that PLAIN has of it, without the length of a text; it is valid until the next call. Of a
// text of more than MaxLineBytes next returns the beginning, and ErrTooLong.
type values interface {
	next() ([]byte, error)
}

// plainDictionary is PLAIN_DICTIONARY, as older writers call RLE_DICTIONARY.
const plainDictionary format.Encoding = 2

// newValues returns the values of a page from a place in its body on. A width of 0 is that of texts.
func newValues(encoding format.Encoding, page body, from int64, width int, known *dictionary) (values, error) {
	in := page.cursor(from, page.size)
	switch {
	case encoding == format.Plain:
		return &plain{in, width}, nil
	case encoding == plainDictionary || encoding == format.RLEDictionary:
		if known == nil {
			return nil, fmt.Errorf("a dictionary is missing: %w", parquet.ErrCorrupted)
		}
		bits, err := in.next(1)
		if err != nil || bits[0] > 32 {
			return nil, fmt.Errorf("the width of the indexes: %w", parquet.ErrCorrupted)
		}
		return &indexed{runs{in: in, width: uint(bits[0])}, known}, nil
	case encoding == format.DeltaBinaryPacked && width == 8:
		numbers, err := newDeltas(in)
		return &int64s{numbers: numbers}, err
	case encoding == format.DeltaLengthByteArray && width == 0:
		return newLengths(page, from)
	case encoding == format.DeltaByteArray && width != 8 && width != 12:
		return newPrefixed(page, from, width)
	case encoding == format.ByteStreamSplit && width > 0:
		s := &split{streams: make([]cursor, width), value: make([]byte, width)}
		each := (page.size - from) / int64(width)
		if each*int64(width) != page.size-from {
			return nil, fmt.Errorf("values of %d bytes in %d: %w", width, page.size-from, parquet.ErrCorrupted)
		}
		for i := range s.streams {
			s.streams[i] = page.cursor(from+int64(i)*each, from+int64(i+1)*each)
		}
		return s, nil
	default:
		return nil, unfit("is encoded with %s, which is not supported for its type", encoding)
	}
}

// plain is PLAIN.
type plain struct {
	in    cursor
	width int
}

func (p *plain) next() ([]byte, error) {
	if p.width > 0 {
		return p.in.next(p.width)
	}
	length, err := p.in.uint32()
	if err != nil {
		return nil, err
	}
	return p.in.text(uint64(length))
}

// indexed is RLE_DICTIONARY.
type indexed struct {
	indexes runs
	known   *dictionary
}

func (d *indexed) next() ([]byte, error) {
	i, err := d.indexes.next()
	if err != nil {
		return nil, err
	}
	return d.known.value(i)
}

// int64s is DELTA_BINARY_PACKED.
type int64s struct {
	numbers *deltas
	value   [8]byte
}

func (d *int64s) next() ([]byte, error) {
	n, err := d.numbers.next()
	binary.LittleEndian.PutUint64(d.value[:], uint64(n))
	return d.value[:], err
}

// lengths is DELTA_LENGTH_BYTE_ARRAY: the lengths of all texts, then the texts.
type lengths struct {
	each  *deltas
	texts cursor
}

func newLengths(page body, from int64) (*lengths, error) {
	each, texts, err := deltasOf(page, from)
	if err != nil {
		return nil, err
	}
	return &lengths{each, page.cursor(texts, page.size)}, nil
}

// deltasOf returns the numbers at a place, and where they end.
func deltasOf(page body, from int64) (numbers *deltas, end int64, err error) {
	ahead, err := newDeltas(page.cursor(from, page.size))
	if err != nil {
		return nil, 0, err
	}
	left, err := ahead.skipAll()
	if err != nil {
		return nil, 0, err
	}
	numbers, err = newDeltas(page.cursor(from, page.size-left))
	return numbers, page.size - left, err
}

func (l *lengths) next() ([]byte, error) {
	length, err := l.each.next()
	if err != nil {
		return nil, err
	}
	return l.texts.text(uint64(length)) // a negative one is too long
}

// prefixed is DELTA_BYTE_ARRAY: how much of a value is that of the one before, and the rest as in lengths.
type prefixed struct {
	shared *deltas
	rest   *lengths
	width  int
	value  []byte
	more   int64 // bytes of the value that value does not have, because it is longer than MaxLineBytes
}

func newPrefixed(page body, from int64, width int) (*prefixed, error) {
	shared, end, err := deltasOf(page, from)
	if err != nil {
		return nil, err
	}
	rest, err := newLengths(page, end)
	return &prefixed{shared: shared, rest: rest, width: width}, err
}

func (p *prefixed) next() ([]byte, error) {
	shared, err := p.shared.next()
	if err != nil {
		return nil, err
	}
	rest, err := p.rest.each.next()
	if err != nil {
		return nil, err
	}
	if before := int64(len(p.value)) + p.more; shared < 0 || shared > before || rest < 0 || rest > p.rest.texts.left() {
		return nil, fmt.Errorf("%d and %d bytes after a value of %d: %w", shared, rest, before, parquet.ErrCorrupted)
	}
	// The value after one that is too long may begin like it: as much of it is kept as a value may have.
	p.value = p.value[:min(shared, int64(len(p.value)))]
	kept := min(rest, MaxLineBytes-int64(len(p.value)))
	bytes, err := p.rest.texts.next(int(kept))
	if err == nil {
		p.value = append(p.value, bytes...)
		err = p.rest.texts.skip(rest - kept)
	}
	if err != nil {
		return nil, err
	}
	if p.more = shared + rest - int64(len(p.value)); p.more > 0 {
		return p.value[:keptBytes], ErrTooLong
	}
	if p.width > 0 && len(p.value) != p.width {
		return nil, fmt.Errorf("a value of %d bytes, not %d: %w", len(p.value), p.width, parquet.ErrCorrupted)
	}
	return p.value, nil
}

// split is BYTE_STREAM_SPLIT: the first bytes of all values, then the second ones, and so on.
type split struct {
	streams []cursor
	value   []byte
}

func (s *split) next() ([]byte, error) {
	for i := range s.streams {
		b, err := s.streams[i].next(1)
		if err != nil {
			return nil, err
		}
		s.value[i] = b[0]
	}
	return s.value, nil
}
