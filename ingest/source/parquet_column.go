package source

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"

	"github.com/runlens/runlens/ingest/normalize"
)

// chunkValues is how many values of a column are decoded at a time.
const chunkValues = 1024

// recordColumn is the column that says the kind.
const recordColumn = -1

// A column is one column of a Parquet file, of which at most two pages are in memory.
type column struct {
	name  string
	leaf  int // position in the file
	field int // position in Raw.Values, or recordColumn
	form  form

	pages  parquet.Pages
	page   parquet.Page
	in     parquet.ValueReader
	left   int64 // values of page that in has not returned
	values []parquet.Value
	unread []parquet.Value // of values
	text   []byte
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

// fill reads values into unread. The texts of all values before may change.
func (c *column) fill() (err error) {
	defer invalid(&err)
	for c.left == 0 {
		parquet.Release(c.page)
		c.page = nil
		page, err := c.pages.ReadPage()
		if err != nil {
			return c.ended(err)
		}
		c.page, c.in, c.left = page, page.Values(), page.NumValues()
	}
	n, err := c.in.ReadValues(c.values[:min(c.left, chunkValues)])
	if n == 0 {
		return c.ended(err)
	}
	c.left -= int64(n)
	c.unread = c.values[:n]
	return nil
}

// ended names the column that ends before its row group does.
func (c *column) ended(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("the column %q: %w", c.name, err)
}

// next returns the next value as in Raw.Values, nil of null. It is valid until the next call.
func (c *column) next() []byte {
	if c.form == nulls {
		return nil
	}
	value := &c.unread[0]
	c.unread = c.unread[1:]
	switch {
	case value.IsNull():
		return nil
	case c.form == texts:
		if text := value.ByteArray(); text != nil {
			return text
		}
		return []byte{}
	case c.form == uuids:
		return value.ByteArray()
	case c.form == int96s:
		c.text = binary.LittleEndian.AppendUint64(c.text[:0], uint64(int96Instant(value.Int96())))
		return c.text
	default:
		c.text = binary.LittleEndian.AppendUint64(c.text[:0], uint64(c.form.instant(value.Int64())))
		return c.text
	}
}

// int96Instant is an INT96 timestamp. The format has no offset; its writers (Spark, Impala, Hive) mean UTC.
func int96Instant(n deprecated.Int96) normalize.Instant {
	const julianDayOf1970 = 2440588
	ofDay := time.Duration(uint64(n[1])<<32 | uint64(n[0]))
	return time.Unix((int64(n[2])-julianDayOf1970)*24*60*60, 0).Add(ofDay).UnixMilli()
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
	parquet.Release(c.page)
	if c.pages != nil {
		c.pages.Close()
	}
	c.pages, c.page, c.in, c.left, c.unread = nil, nil, nil, 0, nil
}
