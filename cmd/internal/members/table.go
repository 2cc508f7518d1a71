package members

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/runlens/runlens/cmd/internal/output"
	"github.com/runlens/runlens/http/client"
)

const (
	indent = "  "
	gap    = 2
	// narrowest is the least width of a column of descriptions, in columns of the terminal.
	narrowest = 24
)

// Write prints the catalog for a person. Lines are at most width columns long, where a description of narrowest columns
// fits; 0 is for lines of any length.
func (c Catalog) Write(out io.Writer, width int) error {
	buffered := bufio.NewWriter(out)
	fmt.Fprintln(buffered, "Catalog version", output.Printable(c.CatalogVersion))
	for _, m := range c.Models {
		m.write(buffered, width)
	}
	return buffered.Flush()
}

func (m Model) write(out io.Writer, width int) {
	fmt.Fprintf(out, "\n%s\n", output.Printable(m.Name))
	for _, text := range []string{m.Description, "A row: " + m.Grain, "A range selects by " + m.EventClock + "."} {
		for _, line := range wrapped(text, width-len(indent)) {
			fmt.Fprintln(out, indent+line)
		}
	}
	metrics := [][]string{{"METRIC", "TYPE", "UNIT", "ADDITIVE", "DESCRIPTION"}}
	for _, metric := range m.Metrics {
		additive := "no"
		if metric.Additive {
			additive = "yes"
		}
		metrics = append(metrics, []string{metric.Name, metric.Type, metric.Unit, additive,
			metric.Description + outdated(metric.Deprecated)})
	}
	table(out, metrics, width)
	dimensions := [][]string{{"DIMENSION", "TYPE", "FILTERS", "DESCRIPTION"}}
	for _, dimension := range m.Dimensions {
		dimensions = append(dimensions, []string{dimension.Name, dimension.Type,
			strings.Join(dimension.Operators, ", "), dimension.Description + outdated(dimension.Deprecated)})
		for _, companion := range dimension.Companions {
			dimensions = append(dimensions, []string{indent + companion.Name, companion.Type, "-", companion.Description})
		}
	}
	table(out, dimensions, width)
}

func outdated(d *client.Deprecated) string {
	if d == nil {
		return ""
	}
	return fmt.Sprintf(" Deprecated since %s: %s", d.Since, d.Note)
}

// table prints aligned rows after an empty line. The last column, of descriptions, goes on below itself.
func table(out io.Writer, rows [][]string, width int) {
	last := len(rows[0]) - 1
	for _, row := range rows {
		for column := range last {
			row[column] = output.Printable(row[column])
		}
	}
	left := len(indent)
	for column := range last {
		longest := 0
		for _, row := range rows {
			longest = max(longest, len(row[column]))
		}
		left += longest + gap
	}
	if width > 0 {
		width = max(width-left, narrowest)
	}
	aligned := tabwriter.NewWriter(out, 0, 0, gap, ' ', 0)
	fmt.Fprintln(aligned)
	for _, row := range rows {
		for i, line := range wrapped(row[last], width) {
			cells := make([]string, last)
			if i == 0 {
				copy(cells, row)
			}
			fmt.Fprintf(aligned, "%s%s\t%s\n", indent, strings.Join(cells, "\t"), line)
		}
	}
	aligned.Flush()
}

// wrapped is a text in lines of at most width characters where its words allow that; in one line if width is not
// positive.
func wrapped(text string, width int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		word = output.Printable(word)
		if line != "" && width > 0 && len([]rune(line))+1+len([]rune(word)) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return append(lines, line)
}
