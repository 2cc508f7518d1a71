// Package output writes the rows of a report in the formats of runlens query, one row after another. Only a table and
// a plot hold rows: a table the first ones, to find its widths, and a plot up to maxPlotted.
package output

import (
	"fmt"
	"io"

	"github.com/runlens/runlens/http/client/report"
)

// A Writer writes one table: Head once, Row for each, then End.
type Writer interface {
	Head(columns []report.Column) error
	Row(row report.Row) error
	// End writes what is left. The facts are whole now.
	End(facts report.Facts) error
}

// Options of the formats for people and spreadsheets.
type Options struct {
	Width        int // of the terminal, in columns; 0 where lines may be of any length
	Color        bool
	Vertical     bool // a table has a line for every value
	Spreadsheets bool // CSV keeps text as text where a spreadsheet opens it
}

// Formats are the names that New takes.
var Formats = []string{"table", "csv", "json", "ndjson", "parquet", "xlsx", "markdown", "plot"}

// Binary reports whether a format is unfit for a terminal.
func Binary(format string) bool { return format == "parquet" || format == "xlsx" }

// New returns the writer of a format.
func New(format string, out io.Writer, o Options) (Writer, error) {
	switch format {
	case "table":
		if o.Vertical {
			return &vertical{out: out}, nil
		}
		return &table{out: out, width: o.Width}, nil
	case "csv":
		return newCSV(out, o.Spreadsheets), nil
	case "json":
		return &document{out: out}, nil
	case "ndjson":
		return &lines{out: out}, nil
	case "parquet":
		return &parquetFile{out: out}, nil
	case "xlsx":
		return &workbook{out: out}, nil
	case "markdown":
		return &markdown{out: out}, nil
	case "plot":
		return &plot{out: out, options: o}, nil
	}
	return nil, fmt.Errorf("there is no format %s", format)
}
