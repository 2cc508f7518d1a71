package ingest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/source"
)

// A Reject is a record that broke a rule, as --rejects writes it (contract 3). Such lines can be
// fixed and ingested as they are (normalize.ReadJSON).
type Reject struct {
	Source string `json:"source"`
	// Line is that of text, or the row of a Parquet file; from 1.
	Line  int    `json:"line"`
	Field string `json:"field"` // empty where no field can be named
	Error string `json:"error"`
	// Record is the record as it was read: its JSON, a JSON string of text that is none, or {"csv": …} (normalize.CSV).
	Record jsontext.Value `json:"record"`
}

// NewReject is the reject of a record for a fault.
func NewReject(name string, record *source.Record, fault error) Reject {
	reject := Reject{Source: name, Line: record.Line, Error: fault.Error()}
	if broken, ok := errors.AsType[*normalize.Error](fault); ok {
		reject.Field, reject.Error = broken.Field, broken.Reason
	}
	if record.QuoteLines > 0 {
		reject.Error += fmt.Sprintf("; the quote that opens in line %d takes %d lines", record.QuoteLine, record.QuoteLines)
	}
	if record.Text == nil {
		reject.Record = record.Raw.AppendJSON(nil)
		return reject
	}
	if record.CSV != nil {
		reject.Record, _ = record.CSV.Reject(record.Text) // texts only, so that there is no error
		return reject
	}
	// A copy: the text's bytes are used again for the next record.
	reject.Record = append(jsontext.Value(nil), record.Text...)
	if !reject.Record.IsValid(jsontext.AllowDuplicateNames(true)) {
		// AppendQuote replaces what is no UTF-8; it has no other error.
		reject.Record, _ = jsontext.AppendQuote(nil, strings.ToValidUTF8(string(record.Text), "\uFFFD"))
	}
	return reject
}

// AppendJSON appends the reject as one line of NDJSON. Bytes that are no UTF-8, such as a file's name may have, become
// U+FFFD. A record that is too deep to be in another object becomes a string, like text that is no JSON.
func (r Reject) AppendJSON(b []byte) ([]byte, error) {
	options := json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	text, err := json.Marshal(r, options)
	if err != nil {
		r.Record, _ = jsontext.AppendQuote(nil, r.Record) // valid UTF-8, so that there is no error
		text, err = json.Marshal(r, options)
	}
	return append(append(b, text...), '\n'), err
}
