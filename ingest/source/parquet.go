package source

import (
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
// page at its own pace, so that memory does not grow with the row groups.
type parquetRows struct {
	file    *File
	closers []io.Closer
	size    int64 // of the file as it is packed
	content io.ReaderAt
	groups  []format.RowGroup
	plain   []parquet.ColumnChunk // see plainColumns
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
		if content, err = spool(plain); err != nil {
			return nil, err
		}
		r.closers = append(r.closers, content)
		r.size = f.read
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

// spool copies a stream to where its end can be read first. The file has no name any more, so that
// it is gone with the process, whatever ends that.
func spool(in io.Reader) (*os.File, error) {
	file, err := os.CreateTemp("", "runlens-*.parquet")
	if err != nil {
		return nil, fmt.Errorf("unpack into a temporary file: %w", err)
	}
	err = os.Remove(file.Name())
	if err == nil {
		_, err = io.Copy(file, in)
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("unpack into a temporary file: %w", err)
	}
	return file, nil
}

func isRegular(file *os.File) bool {
	info, err := file.Stat()
	return err == nil && info.Mode().IsRegular()
}

func (r *parquetRows) open(content io.ReaderAt, size int64) (err error) {
	defer invalid(&err)
	options := []parquet.FileOption{
		parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true), parquet.ReadBufferSize(32 << 10),
	}
	file, err := parquet.OpenFile(content, size, options...)
	if err != nil {
		return err
	}
	metadata := file.Metadata()
	for i := range metadata.RowGroups {
		if metadata.RowGroups[i].NumRows < 0 {
			return parquet.ErrCorrupted
		}
		r.total += metadata.RowGroups[i].NumRows
	}
	if r.columns, err = columnsOf(r.file, metadata); err != nil {
		return err
	}
	r.content, r.pages.content, r.groups = content, content, metadata.RowGroups
	if len(r.groups) > 0 {
		r.plain, err = plainColumns(metadata.Schema, r.groups[0].Columns, options...)
	}
	return err
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
	unpacker, row, err := newUnpacker(r.content, chunk, r.row)
	if err != nil {
		return err
	}
	c.pages = r.plain[c.leaf].(*parquet.FileColumnChunk).PagesFrom(unpacker)
	if row > 0 {
		return c.pages.SeekToRow(row)
	}
	return nil
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
	r.record.Fault = nil
	for i := range r.columns {
		c := &r.columns[i]
		if len(c.unread) == 0 && c.form != nulls {
			if err := c.fill(); err != nil {
				return nil, err
			}
		}
		text := c.next()
		if c.field != recordColumn {
			r.record.Raw.Values[c.field] = text
		} else if string(text) != string(r.record.Raw.Kind) {
			r.record.Fault = &normalize.Error{Field: "record", Reason: "must be " + string(r.record.Raw.Kind) +
				", the kind of all records of this file"}
		}
	}
	r.row++
	r.at.Lines++
	r.record.Line, r.record.RowGroup, r.record.Row = r.at.Lines, r.opened, int(r.row)
	r.file.read = int64(float64(r.size) * (float64(r.at.Lines) / float64(r.total)))
	return &r.record, nil
}

func (r *parquetRows) Position() Position { return r.at }

func (r *parquetRows) Close() error {
	r.release()
	return r.closers[0].Close()
}

// release gives back all but the input, which belongs to the caller until there is a reader.
func (r *parquetRows) release() (err error) {
	defer invalid(&err)
	for _, closer := range r.closers[1:] {
		closer.Close()
	}
	for i := range r.columns {
		r.columns[i].close()
	}
	return nil
}

// invalid turns what the library says of a damaged file, with errors as well as with panics, into an
// error for whoever made the file.
func invalid(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("is not a valid Parquet file: %v", p)
		return
	}
	var unreadable *fs.PathError
	var unfit columnError
	if *err != nil && !errors.As(*err, &unreadable) && !errors.As(*err, &unfit) {
		*err = fmt.Errorf("is not a valid Parquet file: %w", *err)
	}
}
