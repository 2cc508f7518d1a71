package output

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/mattn/go-runewidth"

	"github.com/runlens/runlens/http/client"
	"github.com/runlens/runlens/http/client/report"
)

// shownNull stands for null where people read.
const shownNull = "-"

// shown is a value as people read it. What is hidden in names is spelled out.
func shown(c report.Column, v client.Value) string {
	switch {
	case v.IsNull():
		return shownNull
	case c.Kind == report.Percent:
		f, _ := v.Float64()
		return fmt.Sprintf("%+.1f%%", f)
	case c.Kind == report.Number:
		f, _ := v.Float64()
		return decimals(f)
	case v.IsNumber():
		return v.String()
	}
	return Printable(v.String())
}

// decimals are up to four of a number, or as many more as tell it from a whole one: a rate of 0.99996 is not 1.
func decimals(f float64) string {
	for digits := 4; ; digits++ {
		text := strconv.FormatFloat(f, 'f', digits, 64)
		rounded, _ := strconv.ParseFloat(text, 64)
		if rounded == f || rounded != math.Trunc(rounded) || digits == mostDecimals {
			return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
		}
	}
}

// mostDecimals tell the rate of up to a million million runs from 0 and from 1.
const mostDecimals = 12

// printable is columns whose names are.
func printable(columns []report.Column) []report.Column {
	columns = slices.Clone(columns)
	for i, c := range columns {
		columns[i].Name, columns[i].Member = Printable(c.Name), Printable(c.Member)
	}
	return columns
}

// width is how many columns of a terminal a text takes.
func width(text string) int { return runewidth.StringWidth(text) }

// padded fills a text with spaces up to a width, on the left if it is right-aligned. Longer text is cut where cut is
// true, and ends with an ellipsis then.
func padded(text string, to int, right, cut bool) string {
	if cut && width(text) > to {
		text = runewidth.Truncate(text, to, "…")
	}
	space := strings.Repeat(" ", max(to-width(text), 0))
	if right {
		return space + text
	}
	return text + space
}
