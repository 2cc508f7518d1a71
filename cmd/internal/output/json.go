package output

import (
	"bufio"
	"encoding/json"
	"io"
	"time"

	"github.com/runlens/runlens/http/client"
	"github.com/runlens/runlens/http/client/report"
)

// A document is one JSON object of the shape of the API's answer, with the rows of all pages.
type document struct {
	out  io.Writer
	w    *bufio.Writer
	rows int
}

func (d *document) Head(columns []report.Column) error {
	type column struct {
		Name   string `json:"name"`
		Type   string `json:"type"`
		Member string `json:"member,omitempty"`
	}
	described := make([]column, len(columns))
	for i, c := range columns {
		described[i] = column{c.Name, c.Type(), c.Member}
	}
	d.w = bufio.NewWriter(d.out)
	_, err := d.w.WriteString(`{"columns":` + string(encoded(described)) + `,"rows":[`)
	return err
}

func (d *document) Row(row report.Row) error {
	if d.rows++; d.rows > 1 {
		d.w.WriteByte(',')
	}
	_, err := d.w.Write(encoded(row))
	return err
}

func (d *document) End(f report.Facts) error {
	warnings := f.Warnings
	if warnings == nil {
		warnings = []client.Warning{}
	}
	var next *string
	if f.Next != "" {
		next = &f.Next
	}
	type span struct {
		Start    string `json:"start"`
		End      string `json:"end"`
		Timezone string `json:"timezone"`
		StartUTC string `json:"startUtc"`
		EndUTC   string `json:"endUtc"`
	}
	rest := encoded(struct {
		QueryID        string           `json:"queryId"`
		CatalogVersion string           `json:"catalogVersion"`
		AsOf           string           `json:"asOf"`
		Range          span             `json:"range"`
		Cursor         *string          `json:"cursor"`
		Warnings       []client.Warning `json:"warnings"`
	}{
		f.QueryID, f.CatalogVersion, instant(f.AsOf),
		span{f.Range.Start, f.Range.End, f.Range.Timezone, instant(f.Range.StartUTC), instant(f.Range.EndUTC)},
		next, warnings,
	})
	d.w.WriteString(`],`)
	d.w.Write(rest[1:])
	d.w.WriteByte('\n')
	return d.w.Flush()
}

func instant(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// encoded is a value of ours as JSON; texts keep <, > and &.
func encoded(v any) []byte {
	var b jsonBuffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // strings, numbers and null always encode
	}
	return b[:len(b)-1]
}

type jsonBuffer []byte

func (b *jsonBuffer) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	return len(p), nil
}

// Lines are a JSON object for every row, with its values in the order of the columns.
type lines struct {
	out   io.Writer
	w     *bufio.Writer
	names [][]byte
}

func (l *lines) Head(columns []report.Column) error {
	l.w = bufio.NewWriter(l.out)
	for _, c := range columns {
		l.names = append(l.names, append(encoded(c.Name), ':'))
	}
	return nil
}

func (l *lines) Row(row report.Row) error {
	for i, v := range row {
		separator := byte(',')
		if i == 0 {
			separator = '{'
		}
		l.w.WriteByte(separator)
		l.w.Write(l.names[i])
		l.w.Write(encoded(v))
	}
	_, err := l.w.WriteString("}\n")
	return err
}

func (l *lines) End(report.Facts) error { return l.w.Flush() }
