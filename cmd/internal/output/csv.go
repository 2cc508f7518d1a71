package output

import (
	"encoding/csv"
	"io"
	"regexp"
	"strings"

	"github.com/runlens/runlens/cmd/internal/report"
)

// csvFile is RFC 4180 with the values as they are; null is empty.
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
	for i, column := range columns {
		c.record[i] = column.Name
	}
	return c.w.Write(c.record)
}

func (c *csvFile) Row(row report.Row) error {
	for i, v := range row {
		c.record[i] = v.String()
		if c.spreadsheets && c.columns[i].Kind == report.Text && mangled.MatchString(v.String()) {
			c.record[i] = formula(v.String())
		}
	}
	return c.w.Write(c.record)
}

// formula is one whose result is the text: spreadsheets show it, and neither compute nor reformat it. A literal of a
// formula may have 255 characters.
func formula(text string) string {
	const most = 250
	var literals []string
	for rest := []rune(text); len(rest) > 0; rest = rest[min(most, len(rest)):] {
		literals = append(literals, `"`+strings.ReplaceAll(string(rest[:min(most, len(rest))]), `"`, `""`)+`"`)
	}
	return "=" + strings.Join(literals, "&")
}

func (c *csvFile) End(report.Facts) error {
	c.w.Flush()
	return c.w.Error()
}

// mangled is text that a spreadsheet takes for a formula, a number, a date or a truth value: what begins with a sign,
// a digit or white space, and those words.
var mangled = regexp.MustCompile(`(?i)^(?:[=+\-@\s.,'0-9(%$€£]|true$|false$|` +
	`(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*[ \-/.]?[0-9])`)
