package ingest

import (
	"errors"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/runlens/runlens/ingest/normalize"
	"github.com/runlens/runlens/ingest/source"
)

// A Reject is a record that broke a rule, as --rejects writes it (contract 3).
type Reject struct {
	Source string `json:"source"`
	Line   int    `json:"line"`
	Field  string `json:"field"` // empty where no field can be named
	Error  string `json:"error"`
	// Record is the record as it was read: its JSON, or a JSON string of a line that is none.
	Record jsontext.Value `json:"record"`
}

func newReject(name string, line source.Line, fault error) Reject {
	reject := Reject{Source: name, Line: line.Number, Error: fault.Error()}
	var broken *normalize.Error
	if errors.As(fault, &broken) {
		reject.Field, reject.Error = broken.Field, broken.Reason
	}
	// A copy: the line's bytes are used again for the next line.
	reject.Record = append(jsontext.Value(nil), line.Text...)
	if line.Fault != nil || !reject.Record.IsValid(jsontext.AllowDuplicateNames(true)) {
		// AppendQuote replaces what is no UTF-8; it has no other error.
		reject.Record, _ = jsontext.AppendQuote(nil, strings.ToValidUTF8(string(line.Text), "\uFFFD"))
	}
	return reject
}

// AppendJSON appends the reject as one line of NDJSON.
func (r Reject) AppendJSON(b []byte) ([]byte, error) {
	text, err := json.Marshal(r, jsontext.AllowDuplicateNames(true))
	return append(append(b, text...), '\n'), err
}
