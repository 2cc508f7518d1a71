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
var errOpenQuote = fmt.Errorf("a record is longer than %d bytes", maxCSVBytes)

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

// newCSV reads text, and closes in.
func newCSV(f *File, text io.Reader, in io.Closer, at Position) (Reader, error) {
	r := &csvRecords{in: in, cells: []byte{}}
	r.dialect = normalize.CSV{Kind: f.Kind, Delimiter: string(cmp.Or(f.Delimiter, ',')), Null: f.Null}
	if at == (Position{}) {
		// The mark would be before a quote, where nothing may be.
		buffered := bufio.NewReader(text)
		if head, _ := buffered.Peek(len(byteOrderMark)); bytes.Equal(head, byteOrderMark) {
			n, _ := buffered.Discard(len(byteOrderMark))
			at.Offset = int64(n)
		}
		r.begin(buffered, at)
		header, err := r.csv.Read()
		// Quotes of further lines are in its first, and are not where one may be.
		if _, malformed := errors.AsType[*csv.ParseError](err); malformed && bareReturn(r.window.kept) {
			return nil, normalize.ErrBareReturn
		}
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
	if err := skip(text, at.Offset); err != nil {
		return nil, err
	}
	r.begin(text, at)
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

// bareReturn reports whether the first line has a carriage return that belongs to no CRLF.
func bareReturn(text []byte) bool {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	return bytes.ContainsRune(bytes.TrimSuffix(line, []byte("\r")), '\r')
}

func orEmpty(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("the file is empty; a CSV file begins with the names of the fields")
	}
	return err
}

// Next is part of Reader. A line that repeats the header, as in a file that was made of several, is left out.
func (r *csvRecords) Next() (*Record, error) {
	for {
		cells, err := r.csv.Read()
		r.record = Record{}
		var malformed *csv.ParseError
		switch {
		case errors.As(err, &malformed):
			r.record.Line, r.record.Fault = r.from.Lines+malformed.StartLine, normalize.CSVFault(err)
			r.advance()
		case errors.Is(err, errOpenQuote):
			if line, _ := r.quote(r.window.kept[r.window.taken:]); line > 0 {
				err = fmt.Errorf("%w: is the quote that opens in line %d never closed?", err, r.at.Lines+line)
			}
			return nil, err
		case err != nil:
			return nil, err
		default:
			line, _ := r.csv.FieldPos(0)
			r.record.Line = r.from.Lines + line
			r.advance()
			if slices.Equal(cells, r.dialect.Columns) {
				continue
			}
			var fault *normalize.Error
			if r.cells, fault = r.dialect.Fill(&r.record.Raw, r.positions, cells, r.cells[:0], r.quoted); fault != nil {
				r.record.Fault = fault
			}
		}
		if r.text = bytes.Trim(r.text, "\r\n"); bytes.HasPrefix(r.text, byteOrderMark) {
			if r.text = r.text[len(byteOrderMark):]; r.isHeader() {
				continue
			}
			r.record.Fault = nil
			if fault := r.dialect.Read(r.text, &r.record.Raw); fault != nil {
				r.record.Fault = fault
			}
		}
		r.show()
		return &r.record, nil
	}
}

// isHeader reports whether the text of the last record is the header again.
func (r *csvRecords) isHeader() bool {
	in := csv.NewReader(bytes.NewReader(r.text))
	in.Comma = r.csv.Comma
	cells, err := in.Read()
	return err == nil && slices.Equal(cells, r.dialect.Columns)
}

// show adds to the record what rejects show of it. Blank lines before a record belong to none.
func (r *csvRecords) show() {
	if line, lines := r.quote(r.text); lines > 1 {
		r.record.QuoteLine, r.record.QuoteLines = r.record.Line+line-1, lines
	}
	if r.record.Fault == nil {
		return
	}
	r.record.Text, r.record.CSV = r.text, &r.dialect
	if len(r.record.Text) > maxRejectBytes {
		r.record.Text, r.record.CSV = r.record.Text[:keptBytes], nil // a part cannot be fixed
	}
}

// quote returns the line of a record's text, from 1, in which the quote opens that takes the most lines, and how many;
// 0 where none takes more than one.
func (r *csvRecords) quote(text []byte) (line, lines int) {
	at := 1
	text = text[:bytes.LastIndexByte(text, '\n')+1] // what comes after it takes no more lines
	for begins := true; len(text) > 0; {
		if begins && text[0] == '"' {
			taken := quotedBytes(text)
			more := bytes.Count(text[:taken], []byte{'\n'})
			if more > 0 && more >= lines {
				line, lines = at, more+1
			}
			at, text, begins = at+more, text[taken:], false
			continue
		}
		if text[0] == '\n' {
			at++
		}
		begins = text[0] == '\n' || bytes.HasPrefix(text, []byte(r.dialect.Delimiter))
		if text[0] == '\n' || !begins {
			text = text[1:]
		} else {
			text = text[len(r.dialect.Delimiter):]
		}
	}
	return line, lines
}

// quotedBytes is how long the cell is that a text begins with, its quotes included.
func quotedBytes(text []byte) int {
	for i := 1; i < len(text); i++ {
		if text[i] != '"' {
			continue
		}
		if i+1 == len(text) || text[i+1] != '"' {
			return i + 1
		}
		i++
	}
	return len(text)
}

// quoted is the text of the last record from the quote of a cell on, nil if the cell has no quotes.
func (r *csvRecords) quoted(cell int) []byte {
	line, column := r.csv.FieldPos(cell)
	return normalize.Quoted(r.text, line-r.textLine, column)
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
