package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// plotWidth is the length of the longest bar in characters.
const plotWidth = 50

func printTable(out io.Writer, a queryAnswer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for i, c := range a.Columns {
		fmt.Fprint(table, separator(i), strings.ToUpper(c.Name))
	}
	fmt.Fprintln(table)
	for _, row := range a.Rows {
		for i, v := range row {
			fmt.Fprint(table, separator(i), shown(v, "-"))
		}
		fmt.Fprintln(table)
	}
	return table.Flush()
}

func separator(column int) string {
	if column == 0 {
		return ""
	}
	return "\t"
}

func printCSV(out io.Writer, a queryAnswer) error {
	w := csv.NewWriter(out)
	var header []string
	for _, c := range a.Columns {
		header = append(header, c.Name)
	}
	if err := w.Write(header); err != nil {
		return err
	}
	for _, row := range a.Rows {
		var record []string
		for _, v := range row {
			record = append(record, shown(v, ""))
		}
		if err := w.Write(record); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}

// printPlot draws a bar of the first metric for every row, named by the columns before it.
func printPlot(out io.Writer, a queryAnswer) error {
	metric := slices.IndexFunc(a.Columns, func(c struct{ Name, Type string }) bool { return c.Type == "number" })
	values := make([]float64, len(a.Rows))
	greatest := 0.0
	for i, row := range a.Rows {
		if number, ok := row[metric].(json.Number); ok {
			values[i], _ = number.Float64() // the server writes numbers that a float64 holds
			greatest = max(greatest, values[i])
		}
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "\t%s\n", a.Columns[metric].Name)
	for i, row := range a.Rows {
		var names []string
		for _, v := range row[:metric] {
			names = append(names, shown(v, "-"))
		}
		bar := 0
		if greatest > 0 {
			bar = int(values[i]/greatest*plotWidth + 0.5)
		}
		fmt.Fprintf(table, "%s\t%s %s\n", strings.Join(names, " "), strings.Repeat("█", bar), shown(row[metric], "-"))
	}
	return table.Flush()
}

// shown is a value as text; null as the given one.
func shown(v any, null string) string {
	if v == nil {
		return null
	}
	return fmt.Sprint(v)
}
