package source

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/runlens/runlens/ingest/normalize"
)

// recordColumn is the column that says the kind.
const recordColumn = -1

// A column is one column of a Parquet file, of which one page is open.
type column struct {
	name     string
	leaf     int // position in the file
	field    int // position in Raw.Values, or recordColumn
	form     form
	optional bool // values may be null
	width    int  // of a value in bytes; 0 of texts

	pages  pages
	known  *dictionary // of the row group; nil for none
	left   int64       // values of the page, nulls included
	levels runs        // whether values are there, where they are optional
	// The values of the page are decoded by values from the first one on that is not null.
	encoding format.Encoding
	body     body
	begin    int64 // of the values in body
	values   values
	text     []byte
}

// A form is how a column writes its values.
type form int

const (
	texts form = iota
	uuids
	millis
	micros
	nanos
	int96s // nanoseconds of a day and the Julian day, in UTC
	nulls  // of any type, without a value
)

func (c *column) isBinary() bool {
	return c.form != texts && c.form != nulls && c.field != recordColumn
}

// open goes to a row of a column chunk, counted from 0.
func (c *column) open(chunk *format.ColumnMetaData, row int64) error {
	c.close()
	row, err := c.pages.open(chunk, row, c.visit)
	for ; err == nil && row > 0; row-- {
		if _, err = c.next(); errors.Is(err, ErrTooLong) {
			err = nil
		}
	}
	return err
}

// visit opens a page, or takes a dictionary. (It is pages' callback.)
func (c *column) visit(header *format.PageHeader, page body, offset int64) error {
	switch {
	case header.DictionaryPageHeader.Valid:
		known, err := newDictionary(c.pages.keep(page), c.width, uint64(header.DictionaryPageHeader.V.NumValues))
		c.known = known
		return err
	case header.DataPageHeaderV2.Valid:
		p := &header.DataPageHeaderV2.V
		c.left, c.encoding, c.body, c.begin = int64(p.NumValues), p.Encoding, page, 0
		levels := body{file: c.pages.content, begin: offset + int64(p.RepetitionLevelsByteLength),
			size: int64(p.DefinitionLevelsByteLength)}
		c.levels = runs{in: levels.cursor(0, levels.size), width: 1}
	case header.DataPageHeader.Valid:
		p := &header.DataPageHeader.V
		c.left, c.encoding, c.body, c.begin = int64(p.NumValues), p.Encoding, page, 0
		if !c.optional {
			break
		}
		if p.DefinitionLevelEncoding != format.RLE {
			return unfit("has levels that are encoded with %s, which is not supported", p.DefinitionLevelEncoding)
		}
		in := page.cursor(0, page.size)
		length, err := in.uint32()
		if err != nil {
			return err
		}
		if c.begin = 4 + int64(length); c.begin > page.size {
			return fmt.Errorf("levels of %d bytes: %w", length, parquet.ErrCorrupted)
		}
		c.levels = runs{in: page.cursor(4, c.begin), width: 1}
	}
	c.values = nil
	return nil
}

// next returns the next value as in Raw.Values, nil of null. It is valid until the next call. Of a text that is too
// long it returns the beginning, and ErrTooLong.
func (c *column) next() ([]byte, error) {
	if c.form == nulls {
		return nil, nil
	}
	for c.left == 0 {
		if err := c.pages.next(c.visit); err != nil {
			return nil, c.ended(err)
		}
	}
	c.left--
	if c.optional {
		there, err := c.levels.next()
		if err != nil {
			return nil, c.ended(err)
		}
		if there == 0 {
			return nil, nil
		}
		if there > 1 {
			return nil, c.ended(fmt.Errorf("a level of %d: %w", there, parquet.ErrCorrupted))
		}
	}
	if c.values == nil {
		var err error
		if c.values, err = newValues(c.encoding, c.body, c.begin, c.width, c.known); err != nil {
			c.values = nil
			return nil, c.ended(err)
		}
	}
	value, err := c.values.next()
	if err != nil {
		return value, c.ended(err)
	}
	return c.shown(value), nil
}

// ended names the column that ends before its row group does.
func (c *column) ended(err error) error {
	if errors.Is(err, ErrTooLong) {
		return err
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("the column %q: %w", c.name, err)
}

// shown is a value of the file as in Raw.Values.
func (c *column) shown(value []byte) []byte {
	switch c.form {
	case texts, uuids:
		if value == nil {
			return []byte{}
		}
		return value
	case int96s:
		c.text = binary.LittleEndian.AppendUint64(c.text[:0], uint64(int96Instant(value)))
	default:
		instant := c.form.instant(int64(binary.LittleEndian.Uint64(value)))
		c.text = binary.LittleEndian.AppendUint64(c.text[:0], uint64(instant))
	}
	return c.text
}

// int96Instant is an INT96 timestamp. The format has no offset; its writers (Spark, Impala, Hive) mean UTC.
func int96Instant(n []byte) normalize.Instant {
	const julianDayOf1970 = 2440588
	ofDay := time.Duration(binary.LittleEndian.Uint64(n))
	return time.Unix((int64(binary.LittleEndian.Uint32(n[8:]))-julianDayOf1970)*24*60*60, 0).Add(ofDay).UnixMilli()
}

// instant is a timestamp in milliseconds, what is finer cut off.
func (f form) instant(n int64) normalize.Instant {
	switch f {
	case millis:
		return n
	case micros:
		return time.UnixMicro(n).UnixMilli()
	default:
		return time.Unix(0, n).UnixMilli()
	}
}

// close gives back the pages; the column can be used for the next row group.
func (c *column) close() {
	c.pages.close()
	if c.known != nil {
		if file, ok := c.known.page.file.(*spool); ok {
			file.close()
		}
	}
	c.known, c.left, c.values, c.levels, c.body = nil, 0, nil, runs{}, body{}
}
