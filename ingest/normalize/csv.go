package normalize

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A CSV says how the text of the records of a CSV file is to be read.
type CSV struct {
	Kind      Kind     `json:"kind"`
	Delimiter string   `json:"delimiter"` // one character
	Null      string   `json:"null"`      // the text of a null without quotes; empty for none
	Columns   []string `json:"columns"`   // the header
}

// A rejectedCSV is the text of a record that could not be read. A reject has it as its record, {"csv": …}, so that
// the text can be fixed and read again without its file.
type rejectedCSV struct {
	Text string `json:"text"`
	CSV
}

// Reject is a text as the record of a reject. Bytes that are no UTF-8 become U+FFFD.
func (c *CSV) Reject(text []byte) (jsontext.Value, error) {
	return json.Marshal(map[string]rejectedCSV{"csv": {string(text), *c}}, jsontext.AllowInvalidUTF8(true))
}

// readRejected reads what a reject's record has as "csv".
func readRejected(value jsontext.Value, raw *Raw) *Error {
	var r rejectedCSV
	if err := json.Unmarshal(value, &r); err != nil {
		return &Error{"csv", "must be what a rejects file says of CSV"}
	}
	return r.Read([]byte(r.Text), raw)
}

// What a column contains that is no field.
const (
	kindColumn    = -1
	ignoredColumn = -2
)

// ErrBareReturn says that lines end with CR or CR CR LF.
var ErrBareReturn = errors.New("the header has a carriage return that belongs to no CRLF; convert the file before, " +
	"such as with tr -s '\\r' '\\n'")

// Positions returns the position in Raw.Values for every column, and a negative number for a column that is no field:
// "record", which is allowed and must say the kind, and unknown ones if they are to be ignored. All fields that may
// not be null must be there. Spaces around a name do not count.
func (c *CSV) Positions(ignoreUnknown bool) ([]int, error) {
	fields := Fields(c.Kind)
	positions := make([]int, len(c.Columns))
	for i, name := range c.Columns {
		if strings.Contains(name, "\r") {
			// Else the whole file might be a header, with its records as unknown names, or each last cell have one more.
			return nil, ErrBareReturn
		}
		name = strings.TrimSpace(name)
		positions[i] = kindColumn
		if name != "record" {
			if positions[i] = slices.Index(fields, name); positions[i] < 0 {
				if ignoreUnknown {
					positions[i] = ignoredColumn
					continue
				}
				return nil, c.unknown(name)
			}
		}
		if slices.Contains(positions[:i], positions[i]) {
			return nil, fmt.Errorf("the header names %q twice", name)
		}
	}
	for i, field := range fields {
		if !Nullable(field) && !slices.Contains(positions, i) {
			return nil, fmt.Errorf("the header lacks %q, which a record of kind %s needs", field, c.Kind)
		}
	}
	return positions, nil
}

func (c *CSV) unknown(name string) error {
	if len(c.Columns) == 1 && strings.ContainsAny(name, ",;|\t") {
		const reason = "the header is one name, %q; if the delimiter is not %q, say which with --delimiter"
		return fmt.Errorf(reason, name, c.Delimiter)
	}
	const reason = "the header names %q, which is no field of a record of kind %s; --ignore-unknown leaves it out"
	return fmt.Errorf(reason, name, c.Kind)
}

// Fill puts cells into raw. An empty cell is null where the field may be null, an empty text elsewhere; Null without
// quotes is null. The values are copied to the end of buffer, which is returned. quoted is Quoted of a cell.
func (c *CSV) Fill(
	raw *Raw, positions []int, cells []string, buffer []byte, quoted func(cell int) []byte,
) ([]byte, *Error) {
	raw.Kind = c.Kind
	size := 0
	for _, cell := range cells {
		size += len(cell)
	}
	buffer = slices.Grow(buffer, size)
	fields := Fields(c.Kind)
	var fault *Error
	for i, position := range positions {
		cell := cells[i]
		switch {
		case position == ignoredColumn:
		case position == kindColumn:
			if cell != string(c.Kind) {
				fault = &Error{"record", "must be " + string(c.Kind) + ", the kind of all records of this file"}
			}
		case cell == "" && Nullable(fields[position]):
		case cell == c.Null && cell != "" && quoted(i) == nil:
		default:
			begin := len(buffer)
			if strings.Contains(cell, "\n") {
				buffer = appendUnquoted(buffer, quoted(i))
			} else {
				buffer = append(buffer, cell...)
			}
			raw.Values[position] = buffer[begin:len(buffer):len(buffer)]
		}
	}
	return buffer, fault
}

// Read reads the text of one record.
func (c *CSV) Read(text []byte, raw *Raw) *Error {
	if Fields(c.Kind) == nil {
		return errRecordField
	}
	positions, err := c.Positions(true)
	if err != nil {
		return &Error{"csv", err.Error()}
	}
	in := csv.NewReader(bytes.NewReader(text))
	in.Comma, _ = utf8.DecodeRuneInString(c.Delimiter)
	in.FieldsPerRecord = len(c.Columns)
	cells, err := in.Read()
	if err != nil {
		return CSVFault(err)
	}
	_, fault := c.Fill(raw, positions, cells, []byte{}, func(i int) []byte {
		line, column := in.FieldPos(i)
		return Quoted(text, line-1, column)
	})
	if fault != nil {
		return fault
	}
	if _, err := in.Read(); !errors.Is(err, io.EOF) {
		return &Error{"", "is not valid CSV: more than one record"}
	}
	return nil
}

// Quoted is text from the quote on of the cell that begins at a column, counted in bytes from 1, after some line feeds;
// nil if the cell has no quotes.
func Quoted(text []byte, lineFeeds, column int) []byte {
	for range lineFeeds {
		text = text[bytes.IndexByte(text, '\n')+1:]
	}
	if column > len(text) || text[column-1] != '"' {
		return nil
	}
	return text[column-1:]
}

// appendUnquoted appends what is in the quotes of the cell that a text begins with. encoding/csv would take a carriage
// return before a line feed away.
func appendUnquoted(b, text []byte) []byte {
	for i := 1; i < len(text); i++ {
		if text[i] == '"' {
			if i++; i == len(text) || text[i] != '"' {
				break
			}
		}
		b = append(b, text[i])
	}
	return b
}

// CSVFault puts the reason of encoding/csv in words for whoever wrote the record.
func CSVFault(err error) *Error {
	if malformed, ok := errors.AsType[*csv.ParseError](err); ok {
		err = malformed.Err
	}
	return &Error{"", "is not valid CSV: " + err.Error()}
}
