package olap

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/runlens/runlens/olap/catalog"
	"github.com/runlens/runlens/olap/compile"
)

// AppendCSV appends the rows as CSV (RFC 4180) with a header line: what JSON has as a string is quoted, a number is
// not, and null is nothing. So no reader has to guess, and a text that is empty differs from null. A row of null alone
// is an empty quoted text: readers skip empty lines.
func (r *Result) AppendCSV(b []byte) []byte {
	for i, c := range r.table.Columns {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), c.Name...), '"')
	}
	b = append(b, "\r\n"...)
	for _, row := range r.table.Rows {
		begin := len(b)
		for i, value := range row {
			if i > 0 {
				b = append(b, ',')
			}
			b = value.AppendCSV(b)
		}
		if len(b) == begin {
			b = append(b, `""`...)
		}
		b = append(b, "\r\n"...)
	}
	return b
}

// AppendNDJSON appends the rows as JSON objects, one a line, with the names of the columns as keys.
func (r *Result) AppendNDJSON(b []byte) []byte {
	for _, row := range r.table.Rows {
		for i, value := range row {
			if i == 0 {
				b = append(b, '{')
			} else {
				b = append(b, ',')
			}
			b, _ = jsontext.AppendQuote(b, r.table.Columns[i].Name) // names are the catalog's
			b = value.AppendJSON(append(b, ':'))
		}
		b = append(b, "}\n"...)
	}
	return b
}

// AppendArrow appends the rows as a stream of Arrow's IPC format.
func (r *Result) AppendArrow(b []byte) []byte { return r.table.AppendArrow(b) }

// Facts are what an answer says besides its rows, for formats that have only rows. They mean what spec 2.14 says.
type Facts struct {
	QueryID          uuid.UUID
	CatalogVersion   string
	AsOf             time.Time
	StartUTC, EndUTC time.Time
	Columns          []compile.Column
	Cursor           string   // empty for the last page
	NotAdditive      []string // the members of the warnings
}

// Facts returns what the answer says besides its rows.
func (r *Result) Facts() Facts {
	f := Facts{QueryID: r.request.QueryID, CatalogVersion: catalog.Version, AsOf: r.asOf, Columns: r.table.Columns,
		StartUTC: r.request.Query.Range.StartUTC, EndUTC: r.request.Query.Range.EndUTC, Cursor: r.cursor}
	for _, metric := range r.notAdditive() {
		f.NotAdditive = append(f.NotAdditive, metric.Name)
	}
	return f
}

// Instant is a time as answers have it: RFC 3339 in UTC with milliseconds (contract 4.8).
func Instant(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
