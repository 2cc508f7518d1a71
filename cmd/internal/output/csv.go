package output

import (
	"encoding/csv"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/runlens/runlens/http/client"
	"github.com/runlens/runlens/http/client/report"
)

// csvFile is RFC 4180 with the values as they are; null is empty. An empty value alone is quoted: readers skip empty
// lines.
type csvFile struct {
	w            *csv.Writer
	out          io.Writer
	spreadsheets bool
	columns      []report.Column
	record       []string
}

func newCSV(out io.Writer, spreadsheets bool) *csvFile {
	return &csvFile{w: csv.NewWriter(out), out: out, spreadsheets: spreadsheets}
}

func (c *csvFile) Head(columns []report.Column) error {
	if c.spreadsheets { // Excel takes a file for UTF-8 by its mark only
		if _, err := io.WriteString(c.out, "\ufeff"); err != nil {
			return err
		}
	}
	c.columns, c.record = columns, make([]string, len(columns))
	values := make(report.Row, len(columns))
	for i, column := range columns {
		values[i] = client.StringValue(column.Name)
	}
	return c.write(values, func(int) bool { return true })
}

func (c *csvFile) Row(row report.Row) error {
	return c.write(row, func(i int) bool {
		_, err := time.Parse(time.DateOnly, row[i].String())
		return !row[i].IsNumber() && !row[i].IsNull() && (c.columns[i].Kind != report.Date || err != nil)
	})
}

// write writes a record. Where spreadsheets read it, the texts that one of them would change are formulas, and all
// texts after such a cell are: a spreadsheet that separates by something else takes the rest of the line as a part of
// the first formula, where only literals are harmless.
func (c *csvFile) write(row report.Row, text func(i int) bool) error {
	formulas := false
	for i, v := range row {
		c.record[i] = v.String()
		if c.spreadsheets && text(i) && c.record[i] != "" {
			if formulas = formulas || mangled.MatchString(c.record[i]); formulas {
				c.record[i] = formula(c.record[i])
			}
		}
	}
	if len(c.record) != 1 || c.record[0] != "" {
		return c.w.Write(c.record)
	}
	c.w.Flush()
	_, err := io.WriteString(c.out, `""`+"\n")
	return errors.Join(c.w.Error(), err)
}

// formula is one whose result is the text: spreadsheets show it, and neither compute nor reformat it. A literal of a
// formula may have 255 characters, and ends after each separator: what follows one in the file is a quotation mark,
// whatever the spreadsheet separates by.
func formula(text string) string {
	const most = 250
	var literals []string
	for rest := []rune(text); len(rest) > 0; {
		n := min(most, len(rest))
		if at := slices.IndexFunc(rest[:n], func(r rune) bool { return strings.ContainsRune(separators, r) }); at >= 0 {
			n = at + 1
		}
		literals = append(literals, `"`+strings.ReplaceAll(string(rest[:n]), `"`, `""`)+`"`)
		rest = rest[n:]
	}
	return "=" + strings.Join(literals, "&")
}

func (c *csvFile) End(report.Facts) error {
	c.w.Flush()
	return c.w.Error()
}

// separators are those that spreadsheets separate cells and rows by, besides the comma, which cells are quoted for.
const separators = ";|\t\r\n"

// mangled is text that a spreadsheet takes for a formula, a number, a date or a truth value: what begins with a sign,
// a digit or white space, and those words. A text with a separator would be several cells, each of which may be one.
var mangled = regexp.MustCompile(`(?i)^(?:[=+\-@\s.,'0-9(%$€£＝＋－＠]|true$|false$|` +
	`(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*[ \-/.]?[0-9])|[` + separators + `]`)
