package source

import (
	"io"

	"github.com/runlens/runlens/ingest/normalize"
)

// ndjson reads one JSON object a line; blank lines are left out but counted.
type ndjson struct {
	lines  *lines
	in     io.Closer
	record Record
}

func newNDJSON(in io.ReadCloser, at Position) *ndjson {
	return &ndjson{lines: newLines(in, at), in: in}
}

func (r *ndjson) Next() (*Record, error) {
	text, fault, err := r.lines.next()
	if err != nil {
		return nil, err
	}
	r.record.Line, r.record.Text, r.record.Fault = r.lines.at.Lines, text, fault
	if fault == nil {
		r.record.Fault = normalize.ReadJSON(text, &r.record.Raw)
	}
	return &r.record, nil
}

func (r *ndjson) Position() Position { return r.lines.at }
func (r *ndjson) Close() error       { return r.in.Close() }
