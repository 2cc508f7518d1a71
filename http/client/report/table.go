package report

import (
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/runlens/runlens/http/client"
)

// A Kind says how a column's values are counted, filled and shown.
type Kind uint8

// The kinds of columns.
const (
	Text    Kind = iota
	Date         // YYYY-MM-DD
	Count        // whole numbers; where there is no row, 0
	Number       // any numbers; where there is no row, null
	Percent      // a change in percent; of nothing, null
)

// A Column is one position of every row.
type Column struct {
	Name   string
	Kind   Kind
	Member string // the catalog's; empty for a column that the API does not have
}

// Type is the column's type in the words of the API.
func (c Column) Type() string {
	switch c.Kind {
	case Text:
		return client.TypeString
	case Date:
		return client.TypeDate
	}
	return client.TypeNumber
}

// Numeric reports whether the column holds numbers.
func (c Column) Numeric() bool { return c.Kind >= Count }

// These end the names of the columns that a comparison puts behind a metric's.
const (
	EndPrevious   = "_previous"   // the value of the earlier period
	EndDifference = "_difference" // the value less the earlier one
	EndPercent    = "_percent"    // the difference in percent of the earlier value
)

// PartName parts the name of a column of a comparison into that of its metric and the end. The end is empty for every
// other column.
func PartName(column string) (metric, end string) {
	for _, end := range []string{EndPrevious, EndDifference, EndPercent} {
		if metric, ok := strings.CutSuffix(column, end); ok {
			return metric, end
		}
	}
	return column, ""
}

// A Row has a value for every column.
type Row = []client.Value

// A Table is rows under their columns. Rows can be read once; an error ends them.
type Table struct {
	Columns []Column
	Rows    iter.Seq2[Row, error]
}

// Facts are what is known of the answers that rows came from. They are whole when the rows have been read.
type Facts struct {
	QueryID, CatalogVersion string               // of the first answer
	Range                   client.ResponseRange // of the whole report
	AsOf, AsOfLast          time.Time            // the earliest and the latest
	Pages                   int
	Rows                    int              // counted by who reads them
	Buckets                 int              // weeks or months asked for; 0 without --grain
	Warnings                []client.Warning // each once
	Notes                   []string         // what a person should know of the rows, each once
	More                    bool             // there are further rows
	Cut                     bool             // there may be others, which the API does not give in the order of a metric
	Next                    string           // the cursor of the page after the last one; empty if there is none
}

func (f *Facts) note(text string) {
	if !slices.Contains(f.Notes, text) {
		f.Notes = append(f.Notes, text)
	}
}

// saw adds a page.
func (f *Facts) saw(page *client.Response) {
	if f.Pages == 0 {
		f.QueryID, f.CatalogVersion, f.Range = page.QueryID, page.CatalogVersion, page.Range
		f.AsOf, f.AsOfLast = page.AsOf, page.AsOf
	}
	f.Pages++
	if page.Range.End > f.Range.End {
		f.Range.End, f.Range.EndUTC = page.Range.End, page.Range.EndUTC
	}
	if page.AsOf.Before(f.AsOf) {
		f.AsOf = page.AsOf
	}
	if page.AsOf.After(f.AsOfLast) {
		f.AsOfLast = page.AsOf
	}
	for _, warning := range page.Warnings {
		if !slices.Contains(f.Warnings, warning) {
			f.Warnings = append(f.Warnings, warning)
		}
	}
}

// columnsOf reads the columns of an answer. The API does not say which numbers are whole; by its names those that
// end in _count are.
func columnsOf(page *client.Response) []Column {
	columns := make([]Column, len(page.Columns))
	for i, c := range page.Columns {
		columns[i] = Column{Name: c.Name, Member: c.Member}
		switch {
		case c.Type == client.TypeNumber && strings.HasSuffix(c.Name, "_count"):
			columns[i].Kind = Count
		case c.Type == client.TypeNumber:
			columns[i].Kind = Number
		case c.Type == client.TypeDate:
			columns[i].Kind = Date
		}
	}
	return columns
}

// absent is the value of a metric where there is no row.
func (c Column) absent() client.Value {
	if c.Kind == Count {
		return client.Int64Value(0)
	}
	return client.Value{}
}
