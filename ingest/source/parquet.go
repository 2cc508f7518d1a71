package source

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/runlens/runlens/ingest/normalize"
)

// parquetRows reads a flat Parquet file whose columns carry the names of the fields of its kind, in
// any order. A column named record is allowed and must say the kind. Every column is read page by
// page at its own pace, and of a page value by value, so that memory does not grow with row groups nor pages.
type parquetRows struct {
	file    *File
	closers []io.Closer
	size    int64 // of the file as it is packed
	groups  []format.RowGroup
	pages   pageReader
	total   int64 // rows
	columns []column
	opened  int   // row groups, the one that is being read included
	rows    int64 // of that row group
	row     int64 // of them, read
	at      Position
	record  Record
}

func newParquet(f *File, in io.Closer, plain io.Reader, isPlain bool, at Position) (reader Reader, err error) {
	r := &parquetRows{file: f, closers: []io.Closer{in}, at: at}
	defer func() {
		if err != nil {
			r.release()
		}
	}()
	content, ok := in.(*os.File)
	if !ok || !isPlain || !isRegular(content) {
		if plain, err = beginsAsParquet(plain); err != nil {
			return nil, err
		}
		unpacked, err := newSpool()
		if err != nil {
			return nil, err
		}
		r.closers = append(r.closers, unpacked)
		most, err := unpacked.bound()
		if err == nil {
			err = unpacked.fill(plain, most)
		}
		if err != nil {
			return nil, err
		}
		content, r.size = unpacked.File, f.read
	}
	info, err := content.Stat()
	if err != nil {
		return nil, err
	}
	if len(r.closers) == 1 {
		r.size = info.Size()
	}
	if err := r.open(content, info.Size()); err != nil {
		return nil, err
	}
	r.record.Raw.Kind = f.Kind
	for _, c := range r.columns {
		if c.isBinary() {
			r.record.Raw.Binary |= 1 << c.field
		}
	}
	return r, r.seek(int64(at.Lines))
}

// beginsAsParquet refuses a stream of anything else before all of it is unpacked.
func beginsAsParquet(in io.Reader) (io.Reader, error) {
	buffered := bufio.NewReader(in)
	head, err := buffered.Peek(len(parquetMagic))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if !bytes.Equal(head, parquetMagic) {
		return nil, fmt.Errorf("is not a valid Parquet file: it begins with %q", head)
	}
	return buffered, nil
}

func isRegular(file *os.File) bool {
	info, err := file.Stat()
	return err == nil && info.Mode().IsRegular()
}

func (r *parquetRows) open(content io.ReaderAt, size int64) (err error) {
	defer invalid(&err)
	metadata, err := readFooter(content, size)
	if err != nil {
		return err
	}
	for i := range metadata.RowGroups {
		if metadata.RowGroups[i].NumRows < 0 {
			return parquet.ErrCorrupted
		}
		r.total += metadata.RowGroups[i].NumRows
	}
	if r.columns, err = columnsOf(r.file, metadata); err != nil {
		return err
	}
	r.pages.content, r.groups = content, metadata.RowGroups
	for i := range r.columns {
		r.columns[i].pages.pageReader = &r.pages
	}
	return nil
}

// seek opens the row group that has a row, counted from 0.
func (r *parquetRows) seek(row int64) error {
	if row > r.total {
		return fmt.Errorf("read again to where the last run stopped: the file has only %d rows, not %d", r.total, row)
	}
	for i := range r.groups {
		if rows := r.groups[i].NumRows; row >= rows {
			row -= rows
			r.opened++
			continue
		}
		return r.openGroup(row)
	}
	return nil
}

func (r *parquetRows) openGroup(row int64) (err error) {
	defer invalid(&err)
	group := &r.groups[r.opened]
	r.opened++
	r.rows, r.row = group.NumRows, row
	for i := range r.columns {
		c := &r.columns[i]
		c.close()
		if c.form == nulls {
			continue
		}
		if err := r.openColumn(c, &group.Columns[c.leaf].MetaData); err != nil {
			return fmt.Errorf("row group %d: the column %q: %w", r.opened, c.name, err)
		}
	}
	return nil
}

// openColumn reads the part of a column in the open row group and goes to its next row.
func (r *parquetRows) openColumn(c *column, chunk *format.ColumnMetaData) error {
	if chunk.NumValues != r.rows {
		return fmt.Errorf("%d values for %d rows", chunk.NumValues, r.rows)
	}
	if !unpacks(chunk.Codec) {
		return unfit("is compressed with %s, which is not supported; "+
			"write the file with another compression, such as ZSTD, SNAPPY or LZ4_RAW", chunk.Codec)
	}
	if err := r.pages.vet(chunk); err != nil {
		return err
	}
	return c.open(chunk, r.row)
}

func (r *parquetRows) Next() (*Record, error) {
	for r.row == r.rows {
		if r.opened == len(r.groups) {
			r.file.read = r.size
			return nil, io.EOF
		}
		if err := r.openGroup(0); err != nil {
			return nil, err
		}
	}
	if err := r.readRow(); err != nil {
		return nil, err
	}
	r.row++
	r.at.Lines++
	r.record.Line = r.at.Lines
	r.file.read = int64(float64(r.size) * (float64(r.at.Lines) / float64(r.total)))
	return &r.record, nil
}

func (r *parquetRows) readRow() (err error) {
	defer invalid(&err)
	r.record.Fault = nil
	for i := range r.columns {
		c := &r.columns[i]
		text, err := c.next()
		switch {
		case errors.Is(err, ErrTooLong):
			r.record.Fault = &normalize.Error{Field: c.name, Reason: err.Error()}
		case err != nil:
			return err
		}
		if c.field != recordColumn {
			r.record.Raw.Values[c.field] = text
		} else if string(text) != string(r.record.Raw.Kind) {
			r.record.Fault = &normalize.Error{Field: "record", Reason: "must be " + string(r.record.Raw.Kind) +
				", the kind of all records of this file"}
		}
	}
	return nil
}

func (r *parquetRows) Position() Position { return r.at }

func (r *parquetRows) Close() error {
	r.release()
	return r.closers[0].Close()
}

// release gives back all but the input, which belongs to the caller until there is a reader.
func (r *parquetRows) release() {
	for _, closer := range r.closers[1:] {
		closer.Close()
	}
	for i := range r.columns {
		r.columns[i].close()
	}
}

// invalid turns what the library says of a damaged file, with errors as well as with panics, into an
// error for whoever made the file.
func invalid(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("is not a valid Parquet file: %v", p)
		return
	}
	if *err == nil {
		return
	}
	var unreadable *fs.PathError
	var unfit columnError
	if !errors.As(*err, &unreadable) && !errors.Is(*err, errSpool) && !errors.As(*err, &unfit) {
		*err = fmt.Errorf("is not a valid Parquet file: %w", *err)
	}
}
