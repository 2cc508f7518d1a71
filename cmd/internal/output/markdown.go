package output

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/runlens/runlens/http/client/report"
)

// Markdown is a table of GitHub's dialect, with numbers on the right.
type markdown struct {
	out     io.Writer
	w       *bufio.Writer
	columns []report.Column
}

func (m *markdown) Head(columns []report.Column) error {
	columns = printable(columns)
	m.columns, m.w = columns, bufio.NewWriter(m.out)
	names, rules := make([]string, len(columns)), make([]string, len(columns))
	for i, c := range columns {
		names[i], rules[i] = markdownNames.Replace(c.Name), "---"
		if c.Numeric() {
			rules[i] = "---:"
		}
	}
	_, err := fmt.Fprintf(m.w, "| %s |\n| %s |\n", strings.Join(names, " | "), strings.Join(rules, " | "))
	return err
}

// What Markdown and the HTML in it would take for its own is escaped.
var markdownEscapes = strings.NewReplacer(`\`, `\\`, `|`, `\|`, "`", "\\`", `*`, `\*`, `_`, `\_`, `[`, `\[`, `]`, `\]`,
	`~`, `\~`, `<`, `&lt;`, `>`, `&gt;`, `&`, `&amp;`)

// Names of columns are members, whose underscores need no escape within a word.
var markdownNames = strings.NewReplacer(`\`, `\\`, `|`, `\|`, "`", "\\`", `*`, `\*`, `[`, `\[`, `]`, `\]`,
	`~`, `\~`, `<`, `&lt;`, `>`, `&gt;`, `&`, `&amp;`)

func (m *markdown) Row(row report.Row) error {
	for i, v := range row {
		text := shown(m.columns[i], v)
		if m.columns[i].Kind == report.Text && !v.IsNull() {
			text = markdownEscapes.Replace(text)
		}
		m.w.WriteString("| " + text + " ")
	}
	_, err := m.w.WriteString("|\n")
	return err
}

func (m *markdown) End(report.Facts) error { return m.w.Flush() }
