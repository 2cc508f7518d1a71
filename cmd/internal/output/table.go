package output

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/runlens/runlens/http/client/report"
)

const (
	// sampled rows, of a page, decide on the widths of a table; later ones stream.
	sampled = 500
	gap     = "  "
	// narrowest is how far a column of text is cut to fit the terminal.
	narrowest = 8
)

// A table has columns that are aligned by their first rows.
type table struct {
	out     io.Writer
	width   int // of the terminal; 0 for none
	columns []report.Column
	held    []report.Row
	widths  []int
	cut     int // columns that are narrower than a value of theirs
	lines   *bufio.Writer
}

func (t *table) Head(columns []report.Column) error {
	t.columns = printable(columns)
	t.lines = bufio.NewWriter(t.out)
	return nil
}

func (t *table) Row(row report.Row) error {
	if t.widths != nil {
		return t.line(t.texts(row))
	}
	if t.held = append(t.held, row); len(t.held) < sampled {
		return nil
	}
	return t.begin()
}

func (t *table) texts(row report.Row) []string {
	texts := make([]string, len(row))
	for i, v := range row {
		texts[i] = shown(t.columns[i], v)
	}
	return texts
}

// begin decides on the widths and writes what is held. In a narrow terminal the heads of a comparison, which stand
// behind their metric's, are short, so that names need not be cut.
func (t *table) begin() error {
	names := make([]string, len(t.columns))
	for i, c := range t.columns {
		names[i] = strings.ToUpper(c.Name)
	}
	held := make([][]string, len(t.held))
	for n, row := range t.held {
		held[n] = t.texts(row)
	}
	if t.measure(names, held); t.width > 0 && t.total() > t.width {
		for i, c := range t.columns {
			names[i] = shortHead(c)
		}
		t.measure(names, held)
	}
	t.fit()
	if err := t.line(names); err != nil {
		return err
	}
	for _, texts := range held {
		if err := t.line(texts); err != nil {
			return err
		}
	}
	t.held = nil
	return t.lines.Flush()
}

// measure takes the widths of heads and rows.
func (t *table) measure(names []string, held [][]string) {
	t.widths = make([]int, len(t.columns))
	for _, texts := range append(held, names) {
		for i, text := range texts {
			t.widths[i] = max(t.widths[i], width(text))
		}
	}
}

var shortHeads = map[string]string{report.EndPrevious: "PREV", report.EndDifference: "Δ", report.EndPercent: "Δ%"}

func shortHead(c report.Column) string {
	if _, end := report.PartName(c.Name); end != "" && c.Numeric() && c.Name != c.Member {
		return shortHeads[end]
	}
	return strings.ToUpper(c.Name)
}

// fit narrows the widest columns of text until a line fits the terminal. Numbers and days are never cut.
func (t *table) fit() {
	if t.width == 0 {
		return
	}
	for total := t.total(); total > t.width; total-- {
		widest := -1
		for i, c := range t.columns {
			if c.Kind == report.Text && t.widths[i] > narrowest && (widest < 0 || t.widths[i] > t.widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		t.widths[widest]--
		t.cut++
	}
}

func (t *table) total() int {
	total := len(gap) * (len(t.widths) - 1)
	for _, w := range t.widths {
		total += w
	}
	return total
}

func (t *table) line(texts []string) error {
	var line strings.Builder
	for i, text := range texts {
		if i > 0 {
			line.WriteString(gap)
		}
		c := t.columns[i]
		line.WriteString(padded(text, t.widths[i], c.Numeric(), t.width > 0 && c.Kind == report.Text))
	}
	_, err := fmt.Fprintln(t.lines, strings.TrimRight(line.String(), " "))
	return err
}

func (t *table) End(report.Facts) error {
	if t.widths == nil {
		if err := t.begin(); err != nil {
			return err
		}
	}
	return t.lines.Flush()
}

// Cut reports whether the terminal is too narrow for the table as it is.
func (t *table) Cut() bool { return t.cut > 0 || t.width > 0 && t.total() > t.width }

// Vertical tables have a line for every value.
type vertical struct {
	out     io.Writer
	columns []report.Column
	name    int // the longest
	rows    int
}

func (v *vertical) Head(columns []report.Column) error {
	v.columns = printable(columns)
	for _, c := range v.columns {
		v.name = max(v.name, width(c.Name))
	}
	return nil
}

func (v *vertical) Row(row report.Row) error {
	v.rows++
	var lines strings.Builder
	fmt.Fprintf(&lines, "-- row %d\n", v.rows)
	for i, value := range row {
		fmt.Fprintf(&lines, "%s  %s\n", padded(v.columns[i].Name, v.name, false, false), shown(v.columns[i], value))
	}
	_, err := io.WriteString(v.out, lines.String())
	return err
}

func (v *vertical) End(report.Facts) error { return nil }
