package source

import (
	"bufio"
	"io"

	"github.com/runlens/runlens/ingest/normalize"
)

// ndjson reads one JSON object a line; blank lines are left out but counted.
type ndjson struct {
	lines  *lines
	in     io.Closer
	read   func(line []byte, raw *normalize.Raw) error
	record Record
}

// newNDJSON reads text, and closes in. It takes the buffer of a text that has one of BufferBytes.
func newNDJSON(f *File, text io.Reader, in io.Closer, at Position) *ndjson {
	r := &ndjson{lines: newLines(text, at), in: in, read: normalize.ReadJSON}
	if f.IgnoreUnknown {
		r.read = normalize.ReadKnownJSON
	}
	return r
}

// Plain returns a reader of NDJSON that is not packed. It takes a buffer of BufferBytes for its own.
func Plain(in *bufio.Reader) Reader {
	return newNDJSON(&File{}, in, io.NopCloser(nil), Position{})
}

func (r *ndjson) Next() (*Record, error) {
	text, fault, err := r.lines.next()
	if err != nil {
		return nil, err
	}
	r.record.Line, r.record.Text, r.record.Fault = r.lines.at.Lines, text, fault
	if fault == nil {
		r.record.Fault = r.read(text, &r.record.Raw)
	}
	return &r.record, nil
}

func (r *ndjson) Position() Position { return r.lines.at }
func (r *ndjson) Close() error       { return r.in.Close() }
