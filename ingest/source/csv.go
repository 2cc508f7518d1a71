package source

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/runlens/runlens/ingest/normalize"
)

// maxCSVBytes bounds one CSV record: a quote that is never closed must not read the rest of a large
// file into memory.
const maxCSVBytes = 4 << 20

// maxRejectBytes is how long a faulty record may be that is kept whole. As JSON it is at most six times as long, which
// must be less than MaxLineBytes.
const maxRejectBytes = MaxLineBytes / 8

// errOpenQuote ends a CSV file.
var errOpenQuote = fmt.Errorf("a record is longer than %d bytes; is a quote never closed?", maxCSVBytes)

// csvRecords reads a CSV file (RFC 4180) whose header names the fields of its kind, in any order
// (normalize.CSV).
type csvRecords struct {
	in        io.Closer
	csv       *csv.Reader
	window    *window
	dialect   normalize.CSV
	positions []int    // normalize.CSV.Positions
	from      Position // where the csv reader began
	at        Position
	text      []byte // of the last record, the blank lines before it included
	textLine  int    // the csv reader's number of its first line
	cells     []byte
	record    Record
}

func newCSV(f *File, in io.ReadCloser, at Position) (Reader, error) {
	r := &csvRecords{in: in, cells: []byte{}}
	r.dialect = normalize.CSV{Kind: f.Kind, Delimiter: string(cmp.Or(f.Delimiter, ',')), Null: f.Null}
	if at == (Position{}) {
		// The mark would be before a quote, where nothing may be.
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
		r.dialect.Columns = slices.Clone(header)
		if r.positions, err = r.dialect.Positions(f.IgnoreUnknown); err != nil {
			return nil, err
		}
		r.csv.FieldsPerRecord = len(header)
		r.advance()
		return r, nil
	}
	// The header is at the beginning, the records are read from further on.
	first, err := f.From(Position{})
	if err != nil {
		return nil, err
	}
	first.Close()
	r.dialect, r.positions = first.(*csvRecords).dialect, first.(*csvRecords).positions
	if err := skip(in, at.Offset); err != nil {
		return nil, err
	}
	r.begin(in, at)
	r.csv.FieldsPerRecord = len(r.positions)
	return r, nil
}

func (r *csvRecords) begin(in io.Reader, at Position) {
	r.window = &window{in: in}
	r.csv = csv.NewReader(r.window)
	r.csv.Comma, _ = utf8.DecodeRuneInString(r.dialect.Delimiter)
	r.csv.ReuseRecord = true
	r.from, r.at = at, at
}

func orEmpty(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("the file is empty; a CSV file begins with the names of the fields")
	}
	return err
}

func (r *csvRecords) Next() (*Record, error) {
	cells, err := r.csv.Read()
	r.record = Record{}
	var malformed *csv.ParseError
	switch {
	case errors.As(err, &malformed):
		r.record.Line, r.record.Fault = r.from.Lines+malformed.StartLine, normalize.CSVFault(err)
		r.advance()
	case err != nil:
		return nil, err
	default:
		line, _ := r.csv.FieldPos(0)
		r.record.Line = r.from.Lines + line
		r.advance()
		var fault *normalize.Error
		if r.cells, fault = r.dialect.Fill(&r.record.Raw, r.positions, cells, r.cells[:0], r.isQuoted); fault != nil {
			r.record.Fault = fault
		}
	}
	if r.record.Fault == nil {
		return &r.record, nil
	}
	r.record.Text, r.record.CSV = bytes.Trim(r.text, "\r\n"), &r.dialect // blank lines before a record belong to none
	if len(r.record.Text) > maxRejectBytes {
		r.record.Text, r.record.CSV = r.record.Text[:keptBytes], nil // a part cannot be fixed
	}
	return &r.record, nil
}

// isQuoted reports whether a cell of the last record has quotes.
func (r *csvRecords) isQuoted(cell int) bool {
	line, column := r.csv.FieldPos(cell)
	return normalize.IsQuoted(r.text, line-r.textLine, column)
}

// advance moves the position after the last record and keeps the record's text, which is valid until the
// next one is read.
func (r *csvRecords) advance() {
	r.text, r.textLine = r.window.take(r.csv.InputOffset()), r.at.Lines-r.from.Lines+1
	r.at.Offset = r.from.Offset + r.csv.InputOffset()
	r.at.Lines += bytes.Count(r.text, []byte{'\n'})
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
