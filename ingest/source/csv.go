package source

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/runlens/runlens/ingest/normalize"
)

// maxCSVBytes bounds one CSV record: a quote that is never closed must not read the rest of a large
// file into memory.
const maxCSVBytes = 4 << 20

// errOpenQuote ends a CSV file.
var errOpenQuote = fmt.Errorf("a record is longer than %d bytes; is a quote never closed?", maxCSVBytes)

// csvRecords reads a CSV file (RFC 4180) whose header names the fields of its kind, in any order. An
// empty cell is null where the field may be null, an empty text elsewhere. A column named record
// is allowed and must say the kind.
type csvRecords struct {
	in      io.Closer
	csv     *csv.Reader
	window  *window
	kind    normalize.Kind
	columns []int    // cell -> position in Raw.Values, recordColumn for the column record
	from    Position // where the csv reader began
	at      Position
	cells   []byte
	record  Record
}

const recordColumn = -1

func newCSV(f *File, in io.ReadCloser, at Position) (Reader, error) {
	r := &csvRecords{in: in, kind: f.Kind, cells: []byte{}}
	var err error
	if at == (Position{}) {
		// The mark would stand in front of a quote, where nothing may stand.
		buffered := bufio.NewReader(in)
		if head, _ := buffered.Peek(len(byteOrderMark)); bytes.Equal(head, byteOrderMark) {
			n, _ := buffered.Discard(len(byteOrderMark))
			at.Offset = int64(n)
		}
		r.begin(buffered, at)
		header, err := r.csv.Read()
		if err != nil {
			return nil, fmt.Errorf("read the header: %w", orEmpty(err))
		}
		if r.columns, err = csvColumns(f.Kind, header); err != nil {
			return nil, err
		}
		r.csv.FieldsPerRecord = len(header)
		r.advance()
		return r, nil
	}
	// The header stands at the beginning, the records are read from further on.
	first, err := f.From(Position{})
	if err != nil {
		return nil, err
	}
	first.Close()
	r.columns = first.(*csvRecords).columns
	if err := skip(in, at.Offset); err != nil {
		return nil, err
	}
	r.begin(in, at)
	r.csv.FieldsPerRecord = len(r.columns)
	return r, nil
}

func (r *csvRecords) begin(in io.Reader, at Position) {
	r.window = &window{in: in}
	r.csv = csv.NewReader(r.window)
	r.csv.ReuseRecord = true
	r.from, r.at = at, at
}

func orEmpty(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("the file is empty; a CSV file begins with the names of the fields")
	}
	return err
}

// csvColumns finds the fields that a header names. All fields that may not be null must be there.
func csvColumns(kind normalize.Kind, header []string) ([]int, error) {
	fields := normalize.Fields(kind)
	columns := make([]int, len(header))
	for i, name := range header {
		name = strings.TrimSpace(name)
		columns[i] = recordColumn
		if name != "record" {
			if columns[i] = slices.Index(fields, name); columns[i] < 0 {
				return nil, fmt.Errorf("the header names %q, which is no field of a record of kind %s", name, kind)
			}
		}
		if slices.Contains(columns[:i], columns[i]) {
			return nil, fmt.Errorf("the header names %q twice", name)
		}
	}
	for i, field := range fields {
		if !normalize.Nullable(field) && !slices.Contains(columns, i) {
			return nil, fmt.Errorf("the header lacks %q, which a record of kind %s needs", field, kind)
		}
	}
	return columns, nil
}

func (r *csvRecords) Next() (*Record, error) {
	cells, err := r.csv.Read()
	var malformed *csv.ParseError
	switch {
	case errors.As(err, &malformed):
		r.record = Record{Line: r.from.Lines + malformed.StartLine, Fault: &normalize.Error{Reason: "is not valid CSV: " + malformed.Err.Error()}}
		r.record.Text = bytes.Trim(r.advance(), "\r\n")
		if len(r.record.Text) > keptBytes {
			r.record.Text = r.record.Text[:keptBytes]
		}
		return &r.record, nil
	case err != nil:
		return nil, err
	}
	line, _ := r.csv.FieldPos(0)
	r.record = Record{Line: r.from.Lines + line}
	r.record.Raw.Kind = r.kind
	r.record.Fault = r.read(cells)
	text := r.advance()
	if r.record.Fault != nil {
		r.record.Text = bytes.Trim(text, "\r\n") // blank lines before a record belong to none
	}
	return &r.record, nil
}

// read copies the cells, whose memory is used again.
func (r *csvRecords) read(cells []string) error {
	r.cells = r.cells[:0]
	for _, cell := range cells {
		r.cells = append(r.cells, cell...)
	}
	rest := r.cells
	fields := normalize.Fields(r.kind)
	for i, column := range r.columns {
		cell := rest[:len(cells[i]):len(cells[i])]
		rest = rest[len(cells[i]):]
		switch {
		case column == recordColumn:
			if string(cell) != string(r.kind) {
				return &normalize.Error{Field: "record", Reason: "must be " + string(r.kind) + ", the kind of all records of this file"}
			}
		case len(cell) > 0 || !normalize.Nullable(fields[column]):
			r.record.Raw.Values[column] = cell
		}
	}
	return nil
}

// advance moves the position behind the last record and returns the record's text.
func (r *csvRecords) advance() []byte {
	text := r.window.take(r.csv.InputOffset())
	r.at.Offset = r.from.Offset + r.csv.InputOffset()
	r.at.Lines += bytes.Count(text, []byte{'\n'})
	return text
}

func (r *csvRecords) Position() Position { return r.at }
func (r *csvRecords) Close() error       { return r.in.Close() }

// A window keeps what was read of a stream since the last record.
type window struct {
	in    io.Reader
	kept  []byte
	begin int64 // offset of kept
	taken int   // of kept, by records before
}

func (w *window) Read(p []byte) (int, error) {
	if len(w.kept)-w.taken > maxCSVBytes {
		return 0, errOpenQuote
	}
	if w.taken > 0 { // else a long record would be moved with every part of it that is read
		w.kept = append(w.kept[:0], w.kept[w.taken:]...)
		w.begin += int64(w.taken)
		w.taken = 0
	}
	n, err := w.in.Read(p)
	w.kept = append(w.kept, p[:n]...)
	return n, err
}

// take returns what lies between the last record and an offset. It is valid until the next Read.
func (w *window) take(end int64) []byte {
	text := w.kept[w.taken : end-w.begin]
	w.taken = int(end - w.begin)
	return text
}
